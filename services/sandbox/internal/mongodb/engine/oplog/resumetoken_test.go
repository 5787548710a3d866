package oplog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// TestResumeToken_TokensLookLikeTheServers pins the format, byte by byte, against tokens as
// a server of version 4.4 gives them.
func TestResumeToken_TokensLookLikeTheServers(t *testing.T) {
	t.Parallel()
	oid, err := bson.ObjectIDFromHex("5f0000000000000000000001")
	noError(t, err)
	entry := Entry{
		Time: NewTimestamp(0x5fb9a1c2, 3), Operation: OpInsert, NS: orders,
		UUID: uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"), Key: marshal(t, "_id", oid),
	}
	const event = "825FB9A1C2000000032B022C0100296E5A100400112233445566778899AABBCCDDEEFF4607"
	if got := TokenOf(&entry).String(); !strings.HasPrefix(got, event) {
		t.Errorf("got event token %s, want it to begin with %s", got, event)
	}
	if got, want := HighWaterMark(entry.Time).String(), "825FB9A1C2000000032B0229296E04"; got != want {
		t.Errorf("got high-water mark %s, want %s", got, want)
	}
}

func anyToken(t *rapid.T) ResumeToken {
	at := NewTimestamp(rapid.Uint32Range(1, 3).Draw(t, "seconds"), rapid.Uint32Range(0, 300).Draw(t, "increment"))
	if rapid.Bool().Draw(t, "mark") {
		return HighWaterMark(at)
	}
	id := rapid.SampledFrom([]any{int32(1), "x", 2.5, bson.NewObjectID(), nil}).Draw(t, "id")
	key, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	token := TokenOf(&Entry{Time: at, Index: rapid.Uint32Range(0, 70_000).Draw(t, "index"), UUID: uuid.New(), Key: key})
	if rapid.Bool().Draw(t, "invalidation") {
		token = token.Invalidation()
	}
	return token.Part(rapid.Uint32Range(0, 4).Draw(t, "fragment"))
}

func TestResumeToken_TokenTextsSortAsTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyToken(t), anyToken(t)
		if got, want := strings.Compare(a.String(), b.String()), a.Compare(b); got != want {
			t.Fatalf("%s and %s: texts compare as %d, tokens as %d", a, b, got, want)
		}
	})
}

func TestResumeToken_TokensAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		token := anyToken(t)
		got, err := ParseResumeToken(token.Document())
		if err != nil || got.Compare(token) != 0 || got.String() != token.String() {
			t.Fatalf("got %s and %v, want %s", got, err, token)
		}
	})
}

func TestResumeToken_TokensOfATransactionSortByTheirPlaceInIt(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, index := range []uint32{0, 1, 2, 127, 128, 129, 32_767, 32_768, 1 << 24} {
		texts = append(texts, TokenOf(&Entry{Time: 77, Index: index}).String())
	}
	if !slices.IsSorted(texts) {
		t.Errorf("got %v, want them sorted", texts)
	}
}

func TestResumeToken_BadTokensAreRefused(t *testing.T) {
	t.Parallel()
	good := HighWaterMark(5).String()
	for name, c := range map[string]struct {
		text string
		want mongoerr.Code
	}{
		"an empty text":                        {"", 40649},
		"a text that is not hex":               {"zz", mongoerr.FailedToParse},
		"an odd number of digits":              {good + "0", mongoerr.FailedToParse},
		"no timestamp in front":                {"00" + good[2:], 50811},
		"an end inside the timestamp":          {good[:10], mongoerr.Overflow},
		"another version":                      {strings.Replace(good, "2B02", "2B04", 1), 50811},
		"an integer in more bytes than needed": {strings.Replace(good, "2B02", "2C0002", 1), 50811},
		"an unknown kind":                      {strings.Replace(good, "29296E", "2B02296E", 1), 50811},
		"no end":                               {good[:len(good)-2], 50811},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := ParseResumeToken(marshal(t, "_data", c.text)); codeOf(err) != c.want {
				t.Errorf("got %v, want code %v", err, c.want)
			}
		})
	}
}

func FuzzParseResumeToken(f *testing.F) {
	for _, text := range []string{"", "8", "zz", "00FF", "8260000000", HighWaterMark(5).String(), TokenOf(&Entry{Time: 5}).String()} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseResumeToken(marshal(t, "_data", text))
		if err != nil {
			if mongoerr.From(err).Code == mongoerr.InternalError {
				t.Errorf("got %v, want an error of the server's", err)
			}
			return
		}
		// Lower case hex digits are read too.
		if got := token.String(); got != strings.ToUpper(text) {
			t.Errorf("got %s, want %s", got, text)
		}
	})
}
