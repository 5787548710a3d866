package checkpointtest

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
)

// Tokens of the suite: BSON documents {_data: "8201"} and {_data: "8202"}.
var (
	tokenOne = []byte("\x15\x00\x00\x00\x02_data\x00\x05\x00\x00\x008201\x00\x00")
	tokenTwo = []byte("\x15\x00\x00\x00\x02_data\x00\x05\x00\x00\x008202\x00\x00")
)

const stream = "shop.events"

var anybody = checkpoint.Claimant{Owner: "a", Create: true}

var pinned = checkpoint.ClusterTime{Seconds: 17, Increment: 4}

// Conform runs the suite. open returns an empty store.
func Conform(t *testing.T, open func(t *testing.T) checkpoint.Store) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, checkpoint.Store){
		"the first claim creates the checkpoint with term 1": firstClaim,
		"each claim raises the term and keeps the progress":  laterClaims,
		"claims made together get terms of their own":        claimsTogether,
		"a claim goes above a given term":                    claimAbove,
		"a claim creates only where it may":                  claimMissing,
		"a save of another claim is refused":                 saveOfAnotherClaim,
		"a save over a checkpoint that went back is refused": saveOverRestored,
		"a mark is a save that moves nothing":                markStays,
		"a mark names what is counted, and the last of it":   markNames,
		"that a stream begins anew is kept":                  keepAnew,
		"a save of the term moves the checkpoint":            saveInTerm,
		"a save of an earlier term is refused":               saveOfEarlierTerm,
		"a save that comes late changes nothing":             saveLate,
		"a save without a checkpoint is refused":             saveWithoutClaim,
		"the start is pinned once":                           pinOnce,
		"the start is not pinned beside a token":             pinBesideToken,
		"pinning in an earlier term is refused":              pinOfEarlierTerm,
		"a save leaves nothing of the place before":          saveReplaces,
		"a copy is kept with its progress":                   keepCopy,
		"the options are kept with the token":                keepOptions,
		"the name of a move stays":                           keepMoved,
		"streams do not touch each other":                    streamsApart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func firstClaim(t *testing.T, s checkpoint.Store) {
	got := claim(t, s)
	if got.Stream != stream || got.Term != 1 || got.Token != nil || got.Position != "" || !got.Start.IsZero() {
		t.Errorf("claimed %+v, want term 1 and nothing else", got)
	}
}

func laterClaims(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	for term := int64(2); term < 5; term++ {
		got := claim(t, s)
		if got.Term != term || !bytes.Equal(got.Token, tokenOne) || got.Position != position(tokenOne) {
			t.Errorf("claimed %+v, want term %d and the saved token", got, term)
		}
	}
}

func claimsTogether(t *testing.T, s checkpoint.Store) {
	const claims = 8
	var mu sync.Mutex
	terms := map[int64]bool{}
	var group sync.WaitGroup
	for range claims {
		group.Go(func() {
			got, err := s.Claim(t.Context(), stream, anybody)
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			terms[got.Term] = true
		})
	}
	group.Wait()
	if len(terms) != claims {
		t.Errorf("%d claims got %d terms, want one each", claims, len(terms))
	}
}

func claimAbove(t *testing.T, s checkpoint.Store) {
	for _, tt := range []struct{ above, want int64 }{{6, 7}, {3, 8}, {8, 9}, {20, 21}} {
		got, err := s.Claim(t.Context(), stream, checkpoint.Claimant{Owner: "a", Above: tt.above, Create: true})
		if err != nil || got.Term != tt.want {
			t.Errorf("Claim above %d = %+v, %v, want term %d", tt.above, got, err, tt.want)
		}
	}
}

func claimMissing(t *testing.T, s checkpoint.Store) {
	careful := checkpoint.Claimant{Owner: "a", Above: 4}
	if got, err := s.Claim(t.Context(), stream, careful); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("Claim = %+v, %v, want ErrMissing", got, err)
	}
	if got := claim(t, s); got.Term != 1 {
		t.Errorf("claimed %+v, want term 1: the claim before made nothing", got)
	}
	if got, err := s.Claim(t.Context(), stream, careful); err != nil || got.Term != 5 {
		t.Errorf("Claim = %+v, %v, want term 5", got, err)
	}
}

func saveOfAnotherClaim(t *testing.T, s checkpoint.Store) {
	got := claim(t, s)
	if got.Claim == "" {
		t.Fatal("the claim has no name")
	}
	mine := progress(1, tokenOne)
	mine.Claim = got.Claim
	if err := s.Save(t.Context(), stream, 1, mine); err != nil {
		t.Errorf("Save of the claim = %v", err)
	}
	other := progress(2, tokenTwo)
	other.Claim = "another"
	if err := s.Save(t.Context(), stream, 1, other); !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Save of another claim of the same term = %v, want ErrSuperseded", err)
	}
	if again := claim(t, s); again.Claim == got.Claim || !bytes.Equal(again.Token, tokenOne) {
		t.Errorf("claimed %+v, want another name and the first token", again)
	}
}

func saveOverRestored(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 3, tokenOne) // as a backup has it that is restored after save 5
	later := progress(6, tokenTwo)
	later.Behind = 5
	if err := s.Save(t.Context(), stream, 1, later); !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Save behind 5 over a checkpoint of save 3 = %v, want ErrSuperseded", err)
	}
	later.Behind = 3
	if err := s.Save(t.Context(), stream, 1, later); err != nil {
		t.Errorf("Save behind 3 over a checkpoint of save 3 = %v", err)
	}
	late := progress(4, tokenOne) // its answer was lost, and it comes after 6
	late.Behind = 3
	if err := s.Save(t.Context(), stream, 1, late); err != nil {
		t.Errorf("Save that comes late = %v, want it passed over", err)
	}
	wantToken(t, s, tokenTwo)
}

func markStays(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	if err := s.Save(t.Context(), stream, 1, checkpoint.Progress{Number: 2, Mark: true, Aside: &checkpoint.Aside{Count: 3, From: "p", Coming: []checkpoint.Expected{{ID: "b", At: "q"}}}}); err != nil {
		t.Fatal(err)
	}
	behind := progress(3, tokenTwo)
	behind.Behind = 2
	if err := s.Save(t.Context(), stream, 1, behind); err != nil {
		t.Errorf("Save behind the mark = %v, want the mark counted", err)
	}
	if err := s.Save(t.Context(), stream, 1, checkpoint.Progress{Number: 4, Mark: true}); err != nil {
		t.Fatal(err)
	}
	got := claim(t, s)
	if !bytes.Equal(got.Token, tokenTwo) || got.Options != "options" {
		t.Errorf("claimed %+v, want what was saved before the mark", got)
	}
	if got.Aside == nil || !reflect.DeepEqual(*got.Aside, checkpoint.Aside{Count: 3, From: "p", Coming: []checkpoint.Expected{{ID: "b", At: "q"}}}) {
		t.Errorf("claimed with %+v kept aside, want what a mark has said last", got.Aside)
	}
}

func markNames(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	all := make([]string, checkpoint.MaxNames)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	last := slices.Concat(all[3:], []string{"a", "b"})
	for number, tt := range []struct {
		naming checkpoint.Naming
		want   *checkpoint.Names
	}{
		{checkpoint.Naming{Add: []string{"a"}}, nil},
		{checkpoint.Naming{All: &checkpoint.Names{Purged: 7}}, &checkpoint.Names{IDs: []string{}, Purged: 7}},
		{checkpoint.Naming{Add: []string{"a", "b"}}, &checkpoint.Names{IDs: []string{"a", "b"}, Purged: 7}},
		{checkpoint.Naming{}, &checkpoint.Names{IDs: []string{"a", "b"}, Purged: 7}},
		{checkpoint.Naming{Drop: []string{"a"}, Add: []string{"b"}}, &checkpoint.Names{IDs: []string{"b"}, Purged: 7}},
		{checkpoint.Naming{All: &checkpoint.Names{IDs: all}}, &checkpoint.Names{IDs: all}},
		{checkpoint.Naming{Drop: []string{"2"}, Add: []string{"a", "b"}}, &checkpoint.Names{IDs: slices.Concat(all[1:2], last)}},
	} {
		if err := s.Save(t.Context(), stream, int64(number+1), checkpoint.Progress{Number: 1, Mark: true, Naming: tt.naming}); err != nil {
			t.Fatal(err)
		}
		got := claim(t, s).Names
		if (got == nil) != (tt.want == nil) || got != nil && (!slices.Equal(got.IDs, tt.want.IDs) || got.Purged != tt.want.Purged) {
			t.Errorf("after %+v the names are %+v, want %+v", tt.naming, got, tt.want)
		}
	}
}

func keepAnew(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	moveTo(t, s, 2, checkpoint.Place{Anew: true})
	got := claim(t, s)
	if !got.Anew || got.Pinned() {
		t.Errorf("claimed %+v, want it to begin anew", got)
	}
	if got, err := s.Pin(t.Context(), stream, got.Term, checkpoint.Place{Start: pinned}); err != nil || got.Anew || got.Start != pinned {
		t.Errorf("Pin = %+v, %v, want the start and nothing else", got, err)
	}
}

func saveInTerm(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	save(t, s, 2, tokenTwo)
	wantToken(t, s, tokenTwo)
}

func saveOfEarlierTerm(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	claim(t, s)
	err := s.Save(t.Context(), stream, 1, progress(2, tokenTwo))
	if !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Save = %v, want ErrSuperseded", err)
	}
	wantToken(t, s, tokenOne)
}

func saveLate(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 2, tokenTwo)
	save(t, s, 1, tokenOne)
	save(t, s, 2, tokenOne)
	wantToken(t, s, tokenTwo)
}

func saveWithoutClaim(t *testing.T, s checkpoint.Store) {
	err := s.Save(t.Context(), stream, 1, progress(1, tokenOne))
	if !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Save = %v, want ErrSuperseded", err)
	}
	if got := claim(t, s); got.Token != nil {
		t.Errorf("claimed %+v, want no token", got)
	}
}

func pinOnce(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	for _, start := range []checkpoint.ClusterTime{pinned, {Seconds: 99}} {
		got, err := s.Pin(t.Context(), stream, 1, checkpoint.Place{Start: start})
		if err != nil || got.Start != pinned || got.Term != 1 {
			t.Errorf("Pin(%v) = %+v, %v, want the start %v", start, got, err, pinned)
		}
	}
	if got := claim(t, s); got.Start != pinned {
		t.Errorf("claimed %+v, want the start %v", got, pinned)
	}
}

func pinBesideToken(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	got, err := s.Pin(t.Context(), stream, 1, checkpoint.Place{Start: pinned})
	if err != nil || !got.Start.IsZero() || !bytes.Equal(got.Token, tokenOne) {
		t.Errorf("Pin = %+v, %v, want the token and no start", got, err)
	}
}

func pinOfEarlierTerm(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	claim(t, s)
	if _, err := s.Pin(t.Context(), stream, 1, checkpoint.Place{Start: pinned}); !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Pin = %v, want ErrSuperseded", err)
	}
	if got := claim(t, s); !got.Start.IsZero() {
		t.Errorf("claimed %+v, want no start", got)
	}
}

func saveReplaces(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	moveTo(t, s, 1, checkpoint.Place{Token: tokenOne, Position: position(tokenOne), Event: pinned})
	if got, err := s.Pin(t.Context(), stream, 1, checkpoint.Place{}); err != nil || got.Event != pinned {
		t.Errorf("the place is %+v, %v, want the last event at %v", got, err, pinned)
	}
	moveTo(t, s, 2, checkpoint.Place{Start: pinned})
	if got := claim(t, s); got.Token != nil || got.Position != "" || !got.Event.IsZero() || got.Start != pinned || got.Copy != nil {
		t.Errorf("claimed %+v, want the start %v and nothing else", got, pinned)
	}
}

// keepMoved has later saves and claims leave the name of a move.
func keepMoved(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	named := progress(1, tokenOne)
	named.Moved = "a move"
	if err := s.Save(t.Context(), stream, 1, named); err != nil {
		t.Fatal(err)
	}
	save(t, s, 2, tokenTwo)
	if got := claim(t, s); got.Moved != "a move" {
		t.Errorf("claimed %+v, want the name of the move", got)
	}
}

func keepCopy(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	want := checkpoint.Copy{
		Cause: "test", Since: time.Unix(3, 0).UTC(), Order: "a, b", After: tokenOne, Copied: 7, Total: 9,
		BeganAt: time.Unix(5, 0).UTC(), Done: true,
	}
	moveTo(t, s, 1, checkpoint.Place{Start: pinned, Copy: &want})
	got := claim(t, s)
	if got.Copy == nil || !reflect.DeepEqual(*got.Copy, want) || got.Start != pinned {
		t.Errorf("claimed %+v, want the copy %+v", got, want)
	}
}

func keepOptions(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	if got := claim(t, s); got.Options != "options" {
		t.Errorf("claimed %+v, want the options it was saved with", got)
	}
}

func moveTo(t *testing.T, s checkpoint.Store, number int64, place checkpoint.Place) {
	t.Helper()
	if err := s.Save(t.Context(), stream, 1, checkpoint.Progress{Number: number, Place: place}); err != nil {
		t.Fatalf("save number %d: %v", number, err)
	}
}

func streamsApart(t *testing.T, s checkpoint.Store) {
	claim(t, s)
	save(t, s, 1, tokenOne)
	got, err := s.Claim(t.Context(), "other", anybody)
	if err != nil || got.Term != 1 || got.Token != nil {
		t.Errorf("Claim of another stream = %+v, %v, want term 1 and nothing else", got, err)
	}
}

func claim(t *testing.T, s checkpoint.Store) checkpoint.Checkpoint {
	t.Helper()
	got, err := s.Claim(t.Context(), stream, anybody)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	return got
}

// save saves in term 1.
func save(t *testing.T, s checkpoint.Store, number int64, token []byte) {
	t.Helper()
	err := s.Save(t.Context(), stream, 1, progress(number, token))
	if err != nil {
		t.Fatalf("save number %d: %v", number, err)
	}
}

func wantToken(t *testing.T, s checkpoint.Store, token []byte) {
	t.Helper()
	if got := claim(t, s); !bytes.Equal(got.Token, token) || got.Position != position(token) {
		t.Errorf("checkpoint is %+v, want token %q", got, token)
	}
}

func progress(number int64, token []byte) checkpoint.Progress {
	return checkpoint.Progress{Number: number, Place: checkpoint.Place{Token: token, Position: position(token)}, Options: "options"}
}

// position is a position that goes with a token of the suite.
func position(token []byte) contract.Position {
	return contract.StreamPosition(1, 1, string(token[15:19]))
}
