package changestream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
)

func TestClassify_ErrorsOfTheSourceAreClassified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want Reason
	}{
		"history lost":                        {mongo.CommandError{Code: 286, Name: "ChangeStreamHistoryLost"}, HistoryLost},
		"fatal, as old servers say it":        {mongo.CommandError{Code: 280, Name: "ChangeStreamFatalError"}, HistoryLost},
		"resume point not found":              {mongo.CommandError{Code: 50811}, HistoryLost},
		"token not valid":                     {mongo.CommandError{Code: 260, Name: "InvalidResumeToken"}, TokenUnusable},
		"change over 16 MiB":                  {mongo.CommandError{Code: 10334, Name: "BSONObjectTooLarge"}, ChangeTooLarge},
		"an image that is kept no more":       {mongo.CommandError{Code: 47, Name: "NoMatchingDocument"}, ImageMissing},
		"a pre-image, as old servers say it":  {mongo.CommandError{Code: 51770}, ImageMissing},
		"standalone":                          {mongo.CommandError{Code: 40573}, NotReplicated},
		"unknown stage":                       {mongo.CommandError{Code: 40324}, Refused},
		"bad options":                         {mongo.CommandError{Code: 72}, Refused},
		"bad namespace":                       {mongo.CommandError{Code: 73}, Refused},
		"not primary":                         {mongo.CommandError{Code: 10107, Labels: []string{"ResumableChangeStreamError"}}, ""},
		"cursor not found":                    {mongo.CommandError{Code: 43}, ""},
		"cursor killed":                       {mongo.CommandError{Code: 237}, ""},
		"interrupted by a change of primary":  {mongo.CommandError{Code: 11602}, ""},
		"not allowed, which can be granted":   {mongo.CommandError{Code: 13}, ""},
		"the poll took too long":              {context.DeadlineExceeded, ""},
		"a network error":                     {io.ErrUnexpectedEOF, ""},
		"a code nobody knows":                 {mongo.CommandError{Code: 987654}, ""},
		"anything else":                       {errors.New("unheard of"), ""},
		"the token of the stream has no data": {errClosed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			halt := classify(fmt.Errorf("read: %w", tt.err))
			switch {
			case tt.want == "" && halt != nil:
				t.Errorf("classify(%v) halts with %q, want it tried again", tt.err, halt.Reason)
			case tt.want != "" && (halt == nil || halt.Reason != tt.want):
				t.Errorf("classify(%v) = %v, want %q", tt.err, halt, tt.want)
			}
		})
	}
}

func TestClassify_EveryHaltSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, reason := range halting {
		if advice[reason] == "" {
			t.Errorf("there is no advice for %q", reason)
		}
	}
	err := &HaltError{Reason: NotReplicated, Err: errStandalone}
	if got := err.Error(); !strings.Contains(got, "--replSet") || !errors.Is(err, errStandalone) {
		t.Errorf("error is %q, want it to say how to start a replica set", got)
	}
}

func TestClassify_ThePositionOfATokenIsItsClusterTimeAndItself(t *testing.T) {
	t.Parallel()
	// Version 2: an insert of {_id: 1} in a collection with a UUID.
	const named = "8265539F00000000072B042C0100296E5A1004" + "00112233445566778899AABBCCDDEEFF" +
		"463C6F7065726174696F6E54797065003C696E736572740046646F63756D656E744B657900461E5F6964002B020000"
	const position = "65539f0000000007." + named
	for name, tt := range map[string]struct {
		token bson.D
		want  contract.Position
	}{
		"a token of a change":        {bson.D{{Key: "_data", Value: "8265539F00000000072B"}}, "65539f0000000007.8265539F00000000072B"},
		"a token in lower case":      {bson.D{{Key: "_data", Value: "8265539f00000000072b"}}, "65539f0000000007.8265539F00000000072B"},
		"a token with more than one": {bson.D{{Key: "_data", Value: "8265539F0000000007"}, {Key: "_typeBits", Value: bson.Binary{}}}, "65539f0000000007.8265539F0000000007"},
		"a token of a whole change":  {bson.D{{Key: "_data", Value: named + "04"}}, position + "04"},
		"of its first fragment":      {bson.D{{Key: "_data", Value: named + "2904"}}, position + "04"},
		"of its third fragment":      {bson.D{{Key: "_data", Value: named + "2B0404"}}, position + "04"},
		"a token of an empty read":   {bson.D{{Key: "_data", Value: "8265539F00000000072B0429296E1404"}}, "65539f0000000007.8265539F00000000072B0429296E1404"},
		"no data":                    {bson.D{{Key: "x", Value: 1}}, ""},
		"data of another type":       {bson.D{{Key: "_data", Value: bson.Binary{Data: []byte{0x82}}}}, ""},
		"too short":                  {bson.D{{Key: "_data", Value: "8265539F"}}, ""},
		"not a timestamp":            {bson.D{{Key: "_data", Value: "2965539F0000000007"}}, ""},
		"not hex":                    {bson.D{{Key: "_data", Value: "82ZZ539F0000000007"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token, err := bson.Marshal(tt.token)
			if err != nil {
				t.Fatal(err)
			}
			if got := PositionOf(token); got != tt.want {
				t.Errorf("PositionOf(%v) = %q, want %q", tt.token, got, tt.want)
			}
		})
	}
}

// FuzzPosition feeds any bytes as a token: it never panics, and what it gives
// is a position.
func FuzzPosition(f *testing.F) {
	token, err := bson.Marshal(bson.D{{Key: "_data", Value: "8265539F00000000072B"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Fuzz(func(t *testing.T, token []byte) {
		position := PositionOf(token)
		if position == "" {
			return
		}
		if _, _, err := position.ClusterTime(); err != nil {
			t.Fatalf("PositionOf(%x) = %q: %v", token, position, err)
		}
	})
}
