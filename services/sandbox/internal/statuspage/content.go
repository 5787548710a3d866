package statuspage

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Content is the body of a message as text for people.
type Content struct {
	// Form says what the text is: json or bson, both laid out, text, or hex.
	Form string `json:"form"`
	Text string `json:"text"`
	// Bytes is the length of the body as it was sent.
	Bytes int `json:"bytes"`
}

// unpackedMost bounds what a compressed body is unpacked to.
const unpackedMost = pageBytes

// contentOf reads a body by its type as far as that holds, or by what it looks
// like.
func contentOf(body []byte, contentType, encoding string) Content {
	c := Content{Bytes: len(body)}
	if unpacked, ok := unpack(body, encoding); ok {
		body = unpacked
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	var laidOut bytes.Buffer
	switch {
	case kind == "application/bson" && bson.Raw(body).Validate() == nil:
		if text, err := bson.MarshalExtJSONIndent(bson.Raw(body), false, false, "", "  "); err == nil {
			c.Form, c.Text = "bson", string(text)
			return c
		}
	case utf8.Valid(body) && json.Indent(&laidOut, bytes.TrimSpace(body), "", "  ") == nil:
		c.Form, c.Text = "json", laidOut.String()
		return c
	case readable(body):
		c.Form, c.Text = "text", string(body)
		return c
	}
	c.Form, c.Text = "hex", hex.EncodeToString(body)
	return c
}

func unpack(body []byte, encoding string) ([]byte, bool) {
	if !strings.EqualFold(encoding, "gzip") {
		return nil, false
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	unpacked, err := io.ReadAll(io.LimitReader(r, unpackedMost+1))
	return unpacked, err == nil && len(unpacked) <= unpackedMost
}

// readable tells text from bytes that happen to be UTF-8.
func readable(body []byte) bool {
	return utf8.Valid(body) && !bytes.ContainsFunc(body, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	})
}
