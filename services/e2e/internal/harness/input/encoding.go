package input

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// foreign are the beginnings of files that are no text in UTF-8, with what they are and
// what to do with them.
var foreign = []struct{ mark, is string }{
	{"\xff\xfe", "is UTF-16, not UTF-8: iconv -f UTF-16 -t UTF-8"},
	{"\xfe\xff", "is UTF-16, not UTF-8: iconv -f UTF-16 -t UTF-8"},
	{"\x1f\x8b", "is packed by gzip: give it a name that ends in .gz"},
	{"PK\x03\x04", "is a ZIP archive, as those of spreadsheets are: save it as CSV, or unpack it"},
}

// notUTF8 says what to do with a text of another encoding.
const notUTF8 = "is not valid UTF-8; for a file of Windows or Western Europe: iconv -f WINDOWS-1252 -t UTF-8"

// text takes the mark of UTF-8 away. The error says what a file is that is none.
func text(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	start, _ := b.Peek(4) // what ails it, reading says
	if bytes.HasPrefix(start, []byte("\ufeff")) {
		_, _ = b.Discard(len("\ufeff"))
		return b, nil
	}
	for _, one := range foreign {
		if bytes.HasPrefix(start, []byte(one.mark)) {
			return nil, fmt.Errorf("%s", one.is)
		}
	}
	return b, nil
}
