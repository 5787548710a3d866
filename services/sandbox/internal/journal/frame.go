package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

const (
	magic       = "change-relay journal 2\n"
	olderMagic  = "change-relay journal 1\n"
	frameHeader = 12
	// MaxRecord bounds one record.
	MaxRecord = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame writes a record behind buf.
func appendFrame(buf, record []byte) []byte {
	var head [frameHeader]byte
	binary.LittleEndian.PutUint32(head[:4], uint32(len(record)))
	binary.LittleEndian.PutUint32(head[4:8], crc32.Checksum(head[:4], castagnoli))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(record, castagnoli))
	return append(append(buf, head[:]...), record...)
}

// ErrDamaged is a directory that is not as it was written.
var ErrDamaged = errors.New("the record is damaged")

// errTorn is a file that ends within a frame, or in zeroes.
var errTorn = fmt.Errorf("%w: the file ends within it", ErrDamaged)

// frameReader reads frames and knows where the last good one ended.
type frameReader struct {
	from *bufio.Reader
	size int64 // of the file: a damaged length cannot make it allocate more
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
	case string(head) == olderMagic:
		return f, fmt.Errorf("it was written by an earlier version: begin with an empty directory")
	case string(head) != magic:
		return f, fmt.Errorf("%w: it does not begin with %q", ErrDamaged, magic)
	}
	f.good = int64(len(magic))
	return f, nil
}

// next returns the next record, which is good until the call after; io.EOF
// right behind a whole frame, errTorn where the file ends within one, ErrDamaged
// for one that is not as it was written.
func (f *frameReader) next() ([]byte, error) {
	var head [frameHeader]byte
	n, err := io.ReadFull(f.from, head[:])
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, f.short(head[:n])
	case err != nil:
		return nil, err
	}
	length := binary.LittleEndian.Uint32(head[:4])
	if crc32.Checksum(head[:4], castagnoli) != binary.LittleEndian.Uint32(head[4:8]) {
		return nil, f.zeroes(head[:])
	}
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
	if crc32.Checksum(record, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, ErrDamaged
	}
	f.good += frameHeader + int64(length)
	return record, nil
}

// short tells a torn header from the rest of a damaged file.
func (f *frameReader) short(head []byte) error {
	if len(head) < 8 || crc32.Checksum(head[:4], castagnoli) == binary.LittleEndian.Uint32(head[4:8]) {
		return errTorn
	}
	return f.zeroes(head)
}

// zeroes tells a tail that storage has made room for, and nothing more, from
// damage.
func (f *frameReader) zeroes(head []byte) error {
	rest := io.MultiReader(bytes.NewReader(head), f.from)
	buf := make([]byte, 64<<10)
	for {
		n, err := rest.Read(buf)
		if len(bytes.TrimLeft(buf[:n], "\x00")) > 0 {
			return ErrDamaged
		}
		if errors.Is(err, io.EOF) {
			return errTorn
		}
		if err != nil {
			return err
		}
	}
}

// frameAt returns the record of a whole frame at the beginning of b, and the
// frame's size; 0 where there is none.
func frameAt(b []byte) (record []byte, size int) {
	if len(b) < frameHeader || crc32.Checksum(b[:4], castagnoli) != binary.LittleEndian.Uint32(b[4:8]) {
		return nil, 0
	}
	length := int64(binary.LittleEndian.Uint32(b))
	if length > int64(len(b)-frameHeader) {
		return nil, 0
	}
	record = b[frameHeader : frameHeader+length]
	if crc32.Checksum(record, castagnoli) != binary.LittleEndian.Uint32(b[8:12]) {
		return nil, 0
	}
	return record, frameHeader + len(record)
}
