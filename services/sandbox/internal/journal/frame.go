package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

const (
	magic       = "change-relay journal 1\n"
	frameHeader = 8
	// MaxRecord bounds one record.
	MaxRecord = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame writes a record behind buf.
func appendFrame(buf, record []byte) []byte {
	var head [frameHeader]byte
	binary.LittleEndian.PutUint32(head[:4], uint32(len(record)))
	sum := crc32.Update(crc32.Checksum(head[:4], castagnoli), castagnoli, record)
	binary.LittleEndian.PutUint32(head[4:], sum)
	return append(append(buf, head[:]...), record...)
}

// errTorn is a frame that is not whole or not as it was written.
var errTorn = errors.New("damaged frame")

// frameReader reads frames and knows where the last good one ended.
type frameReader struct {
	from *bufio.Reader
	size int64 // of the file: a damaged length can not make it allocate more
	good int64 // offset behind the last whole frame
	buf  []byte
}

func newFrameReader(file *os.File) (*frameReader, error) {
	f := &frameReader{from: bufio.NewReaderSize(file, 1<<20)}
	info, err := file.Stat()
	if err != nil {
		return f, err
	}
	f.size = info.Size()
	head := make([]byte, len(magic))
	switch _, err := io.ReadFull(f.from, head); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return f, errTorn
	case err != nil:
		return f, err
	case string(head) != magic:
		return f, fmt.Errorf("it does not begin with %q", magic)
	}
	f.good = int64(len(magic))
	return f, nil
}

// next returns the next record, which is good until the call after; io.EOF
// right behind a whole frame, errTorn elsewhere.
func (f *frameReader) next() ([]byte, error) {
	var head [frameHeader]byte
	n, err := io.ReadFull(f.from, head[:])
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errTorn
	case err != nil:
		return nil, err
	}
	length := binary.LittleEndian.Uint32(head[:4])
	if int64(length) > f.size-f.good-frameHeader {
		return nil, errTorn
	}
	if int(length) > cap(f.buf) {
		f.buf = make([]byte, length)
	}
	record := f.buf[:length]
	if _, err := io.ReadFull(f.from, record); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errTorn
		}
		return nil, err
	}
	sum := crc32.Update(crc32.Checksum(head[:4], castagnoli), castagnoli, record)
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errTorn
	}
	f.good += frameHeader + int64(length)
	return record, nil
}
