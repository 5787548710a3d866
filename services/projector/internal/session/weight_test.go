package session_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// packed compresses each part as a member of one gzip.
func packed(t *testing.T, level int, parts ...[]byte) []byte {
	t.Helper()
	var body bytes.Buffer
	for _, part := range parts {
		w, err := gzip.NewWriterLevel(&body, level)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return body.Bytes()
}

func TestWeight_CountsWhatACompressedBodyBecomes(t *testing.T) {
	t.Parallel()
	const mib, best = 1 << 20, gzip.BestCompression
	whole := packed(t, best, make([]byte, mib))
	long := packed(t, gzip.NoCompression, make([]byte, 5*mib))
	binary.LittleEndian.PutUint32(long[len(long)-4:], 1)
	for name, tt := range map[string]struct {
		body []byte
		want int
	}{
		"one member":                         {whole, mib},
		"a small one behind a large one":     {packed(t, best, make([]byte, mib), []byte("{}")), mib + 2},
		"an empty one behind many":           {packed(t, best, make([]byte, mib), make([]byte, mib), nil), 2 * mib},
		"more than is applied":               {packed(t, best, make([]byte, 12*mib), make([]byte, 12*mib), nil), 16 * mib},
		"a trailer that promises 4 GiB":      {append(whole[:len(whole)-4:len(whole)-4], 255, 255, 255, 255), 16 * mib},
		"a trailer too small for so much":    {long, 5 * mib},
		"a second one that is no gzip":       {append(slices.Clip(whole), 0x1f, 0x8b, 8, 0), mib},
		"no gzip, but the start of a member": {[]byte{0, 0x1f, 0x8b, 8, 0}, 0},
		"shorter than a trailer":             {[]byte{1, 2}, 0},
	} {
		m := session.Message{Message: contract.Message{Body: tt.body, ContentEncoding: "gzip"}}
		plain := session.Message{Message: contract.Message{Body: tt.body}}
		if got := m.Weight() - plain.Weight(); got != int64(tt.want) {
			t.Errorf("%s: got %d bytes, want %d", name, got, tt.want)
		}
	}
}
