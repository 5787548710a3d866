package amqp

import (
	"encoding/binary"
	"math"
	"time"
)

// AppendNull appends null (section 1.6.1).
func AppendNull(b []byte) []byte { return append(b, codeNull) }

// AppendBool appends a boolean (section 1.6.2).
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

// AppendUbyte appends an unsigned byte (section 1.6.3).
func AppendUbyte(b []byte, v uint8) []byte { return append(b, codeUbyte, v) }

// AppendUint appends an unsigned 32-bit integer in its shortest form (section 1.6.5).
func AppendUint(b []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(b, codeUint0)
	case v < 256:
		return append(b, codeSmallUint, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(b, codeUint), v)
}

// AppendUlong appends an unsigned 64-bit integer in its shortest form (section 1.6.6).
func AppendUlong(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, codeUlong0)
	case v < 256:
		return append(b, codeSmallUlong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
}

// AppendInt appends a 32-bit integer in its shortest form (section 1.6.9).
func AppendInt(b []byte, v int32) []byte {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		return append(b, codeSmallInt, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(b, codeInt), uint32(v))
}

// AppendLong appends a 64-bit integer in its shortest form (section 1.6.10).
func AppendLong(b []byte, v int64) []byte {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		return append(b, codeSmallLong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeLong), uint64(v))
}

// AppendTimestamp appends a point in time with millisecond precision (section 1.6.17).
func AppendTimestamp(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeTimestamp), uint64(t.UnixMilli()))
}

// AppendUUID appends a UUID (section 1.6.18).
func AppendUUID(b []byte, u UUID) []byte { return append(append(b, codeUUID), u[:]...) }

// AppendBinary appends octets (section 1.6.19).
func AppendBinary(b, v []byte) []byte {
	return append(appendVariable(b, codeBinary8, codeBinary32, len(v)), v...)
}

// AppendString appends a UTF-8 string (section 1.6.20).
func AppendString(b []byte, v string) []byte {
	return append(appendVariable(b, codeString8, codeString32, len(v)), v...)
}

// AppendSymbol appends a symbol (section 1.6.21).
func AppendSymbol(b []byte, v Symbol) []byte {
	return append(appendVariable(b, codeSymbol8, codeSymbol32, len(v)), v...)
}

func appendVariable(b []byte, short, long byte, size int) []byte {
	if size < 256 {
		return append(b, short, byte(size))
	}
	return binary.BigEndian.AppendUint32(append(b, long), uint32(size))
}

// AppendDescriptor appends the numeric descriptor of a described type (section 1.2).
func AppendDescriptor(b []byte, code uint64) []byte {
	return AppendUlong(append(b, codeDescribed), code)
}

// AppendValue appends a value of any type that the decoder produces, or of the Go types that map to one. A type it does
// not know is written as null.
func AppendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return AppendBool(b, v)
	case string:
		return AppendString(b, v)
	case Symbol:
		return AppendSymbol(b, v)
	case []byte:
		return AppendBinary(b, v)
	case time.Time:
		return AppendTimestamp(b, v)
	case UUID:
		return AppendUUID(b, v)
	case Described:
		return AppendValue(AppendValue(append(b, codeDescribed), v.Descriptor), v.Value)
	case []any, Map, map[string]any, Array, []int64, []string, []Symbol, []UUID, []time.Time:
		return appendCompound(b, v)
	}
	return appendNumber(b, v)
}

func appendNumber(b []byte, v any) []byte {
	switch v := v.(type) {
	case uint8:
		return AppendUbyte(b, v)
	case uint16:
		return binary.BigEndian.AppendUint16(append(b, codeUshort), v)
	case uint32:
		return AppendUint(b, v)
	case uint64:
		return AppendUlong(b, v)
	case int8:
		return append(b, codeByte, byte(v))
	case int16:
		return binary.BigEndian.AppendUint16(append(b, codeShort), uint16(v))
	case int32:
		return AppendInt(b, v)
	case int64:
		return AppendLong(b, v)
	case int:
		return AppendLong(b, int64(v))
	case float32:
		return binary.BigEndian.AppendUint32(append(b, codeFloat), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, codeDouble), math.Float64bits(v))
	case Char:
		return binary.BigEndian.AppendUint32(append(b, codeChar), uint32(v))
	case Decimal:
		return append(append(b, decimalCode(len(v))), v...)
	}
	return AppendNull(b)
}

func decimalCode(size int) byte {
	switch size {
	case 4:
		return codeDecimal32
	case 8:
		return codeDecimal64
	}
	return codeDecimal128
}
