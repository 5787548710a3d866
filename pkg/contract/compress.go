package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

func compress(data []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	var packed bytes.Buffer
	packed.Grow(len(data) / 2)
	w.Reset(&packed)
	// Writing to a bytes.Buffer cannot fail.
	_, _ = w.Write(data)
	_ = w.Close()
	w.Reset(io.Discard) // a pooled writer keeps nobody's body alive
	return packed.Bytes()
}

type gzipReader struct {
	packed bytes.Reader
	gzip   gzip.Reader
}

var gzipReaders = sync.Pool{New: func() any { return new(gzipReader) }}

// decompress unpacks gzip of at most limit bytes.
func decompress(packed []byte, limit int64) ([]byte, error) {
	r := gzipReaders.Get().(*gzipReader)
	defer gzipReaders.Put(r)
	defer r.packed.Reset(nil)
	r.packed.Reset(packed)
	if err := r.gzip.Reset(&r.packed); err != nil {
		return nil, fmt.Errorf("is not gzip: %w", err)
	}
	var data bytes.Buffer
	data.Grow(sizeHint(packed, limit) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(&r.gzip, limit)); err != nil {
		return nil, fmt.Errorf("is not gzip: %w", err)
	}
	// The end of the stream, where the checksum is, lies within the bound.
	switch n, err := r.gzip.Read(make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("unpacks to more than %d bytes", limit)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("is not gzip: %w", err)
	}
	return data.Bytes(), nil
}

// sizeHint is how much to set aside for the data: what the trailer says (RFC
// 1952 section 2.3.1, ISIZE), as far as that is cheap to believe.
func sizeHint(packed []byte, limit int64) int {
	const believed = 1 << 20
	if len(packed) < 4 {
		return 0
	}
	size := int64(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
	return int(min(size, limit, believed))
}
