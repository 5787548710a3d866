package amqp

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// appendCompound appends lists, maps and arrays (sections 1.6.22 to 1.6.24).
func appendCompound(b []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		return appendList(b, v)
	case Map:
		return AppendMap(b, v)
	case map[string]any:
		m := make(Map, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m = append(m, Pair{Key: k, Value: v[k]})
		}
		return AppendMap(b, m)
	case Array:
		return appendArray(b, v)
	case []int64:
		return appendTyped(b, codeLong, v, func(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) })
	case []time.Time:
		return appendTyped(b, codeTimestamp, v, func(b []byte, t time.Time) []byte {
			return binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
		})
	case []UUID:
		return appendTyped(b, codeUUID, v, func(b []byte, u UUID) []byte { return append(b, u[:]...) })
	case []string:
		return appendTyped(b, codeString32, v, appendLong32[string])
	case []Symbol:
		return appendTyped(b, codeSymbol32, v, appendLong32[Symbol])
	}
	return AppendNull(b)
}

func appendLong32[S ~string](b []byte, s S) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendList(b []byte, items []any) []byte {
	if len(items) == 0 {
		return append(b, codeList0)
	}
	b, start := beginCompound(b, codeList32)
	for _, v := range items {
		b = AppendValue(b, v)
	}
	return endCompound(b, start, len(items))
}

// AppendMap appends a map with its entries in order (section 1.6.23).
func AppendMap(b []byte, m Map) []byte {
	b, start := beginCompound(b, codeMap32)
	for _, p := range m {
		b = AppendValue(AppendValue(b, p.Key), p.Value)
	}
	return endCompound(b, start, 2*len(m))
}

// beginCompound writes a wide constructor and leaves room for size and count.
func beginCompound(b []byte, code byte) ([]byte, int) {
	b = append(b, code, 0, 0, 0, 0, 0, 0, 0, 0)
	return b, len(b) - 8
}

// endCompound fills in the size (which counts the count field) and the count.
func endCompound(b []byte, start, count int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	binary.BigEndian.PutUint32(b[start+4:], uint32(count))
	return b
}

func appendTyped[T any](b []byte, code byte, items []T, element func([]byte, T) []byte) []byte {
	b, start := beginCompound(b, codeArray32)
	b = append(b, code)
	for _, v := range items {
		b = element(b, v)
	}
	return endCompound(b, start, len(items))
}

// appendArray writes the elements in the wide constructor they share.
func appendArray(b []byte, a Array) []byte {
	b, start := beginCompound(b, codeArray32)
	if a.Descriptor != nil {
		b = AppendValue(append(b, codeDescribed), a.Descriptor)
	}
	b = append(b, a.Code)
	for _, v := range a.Items {
		b = append(b, appendWide(nil, v)[1:]...)
	}
	return endCompound(b, start, len(a.Items))
}

// appendWide appends a value in its widest constructor, the only one this package writes into arrays.
func appendWide(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, codeBool, 1)
		}
		return append(b, codeBool, 0)
	case uint32:
		return binary.BigEndian.AppendUint32(append(b, codeUint), v)
	case uint64:
		return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
	case int32:
		return binary.BigEndian.AppendUint32(append(b, codeInt), uint32(v))
	case int64:
		return binary.BigEndian.AppendUint64(append(b, codeLong), uint64(v))
	case string:
		return appendLong32(append(b, codeString32), v)
	case Symbol:
		return appendLong32(append(b, codeSymbol32), v)
	case []byte:
		return appendLong32(append(b, codeBinary32), string(v))
	case []any:
		if len(v) == 0 {
			b, start := beginCompound(b, codeList32)
			return endCompound(b, start, 0)
		}
	}
	return AppendValue(b, v)
}

// wideCode returns the constructor [appendWide] uses for values read with code.
func wideCode(code byte) byte {
	switch code {
	case codeTrue, codeFalse:
		return codeBool
	case codeUint0, codeSmallUint:
		return codeUint
	case codeUlong0, codeSmallUlong:
		return codeUlong
	case codeSmallInt:
		return codeInt
	case codeSmallLong:
		return codeLong
	case codeList0, codeList8:
		return codeList32
	case codeBinary8, codeString8, codeSymbol8:
		return code + 0x10
	case codeMap8, codeArray8:
		return code + 0x10
	}
	return code
}
