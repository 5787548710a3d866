package projection_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// inGo is a projection of some code.
func inGo(t *testing.T, code projection.Code) *projection.Coded {
	t.Helper()
	code.Name, code.Collection, code.Revision = "p", "c", "1"
	p, err := projection.NewCoded(code)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func writing(writes ...projection.Write) func(*projection.Change, bson.Raw) ([]projection.Write, error) {
	return func(*projection.Change, bson.Raw) ([]projection.Write, error) { return writes, nil }
}

func setting(id, value any) projection.Write {
	return projection.Write{ID: id, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: value}}}}}
}

func TestCoded_NamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := projection.NewCoded(projection.Code{Name: "p", Collection: "parked_messages", Version: -1, Types: []string{""}, Shared: true, State: true})
	for _, want := range []string{`"parked_messages" is the projector's own`, "version -1", "no revision", "type is empty", "state is not for", "does not decide"} {
		if err == nil || !strings.Contains(err.Error(), `projection "p" in Go: `) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want that it says %s", err, want)
		}
	}
}

// Whatever code does short of ending the process is an error of the event.
func TestCoded_TurnsAPanicIntoAnErrorWithItsStack(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(){
		"a panic":                 func() { panic("of the code") },
		"a runtime error":         func() { _ = []int{}[strings.Count(t.Name(), "/")] },
		"an end of the goroutine": runtime.Goexit,
	} {
		p := inGo(t, projection.Code{Decide: func(*projection.Change, bson.Raw) ([]projection.Write, error) {
			decide()
			return nil, nil
		}})
		var told *projection.PanicError
		projections := projection.Projections{p}.Telling(func(e *projection.PanicError) { told = e })
		_, err := projections.Decide(change(t, `{}`))
		if err == nil || !strings.Contains(err.Error(), `projection "p", event type "Happened": panic: `) {
			t.Errorf("%s: got %v, want it to say that the code has panicked", name, err)
		}
		if told == nil || told.EventID != "id-1" || told.AggregateID != "order-1" || !strings.Contains(string(told.Stack), "coded_test.go") {
			t.Errorf("%s: was told %v, want the event, and a stack of the code", name, told)
		}
		if _, err := (projection.Projections{p}).Decide(change(t, `{}`)); err == nil {
			t.Errorf("%s, with nobody to be told: got no error", name)
		}
	}
}

func TestCoded_EndsADecisionThatDoesNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		p := inGo(t, projection.Code{Decide: func(*projection.Change, bson.Raw) ([]projection.Write, error) {
			<-release
			return nil, nil
		}})
		if _, err := p.Decide(change(t, `{}`)); err == nil || !strings.Contains(err.Error(), "takes more than 10s") {
			t.Errorf("got %v, want that it takes too long", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := change(t, `{}`)
		stopped.Within(ctx)
		go cancel()
		if _, err := p.Decide(stopped); !errors.Is(err, projection.ErrInterrupted) {
			t.Errorf("got %v, want it interrupted", err)
		}
		if _, err := p.Decide(stopped); !errors.Is(err, projection.ErrInterrupted) {
			t.Errorf("begun after the end: got %v, want it interrupted", err)
		}
	})
}

func TestCoded_BoundsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	deep := any(1)
	for range 1100 {
		deep = bson.A{deep}
	}
	many := make([]projection.Write, 1001)
	for i := range many {
		many[i] = setting(i, 1)
	}
	large := strings.Repeat("x", 9<<20)
	for name, tt := range map[string]struct {
		shared bool
		writes []projection.Write
		want   string
	}{
		"another aggregate's document":    {false, []projection.Write{setting("order-2", 1)}, `that of the event's aggregate, "order-1"`},
		"two documents":                   {false, []projection.Write{setting("order-1", 1), setting("order-1", 2)}, "one document for each aggregate"},
		"too many documents":              {true, many, "1001 writes, and one event may have at most 1000"},
		"too large":                       {true, []projection.Write{setting("a", large), setting("b", large)}, "more than 16777216 bytes"},
		"too deep":                        {true, []projection.Write{setting("a", deep)}, "nested deeper than 1000 levels"},
		"an _id that is a document":       {true, []projection.Write{setting(bson.D{{Key: "a", Value: 1}}, 1)}, "not a string, a whole number or an object id"},
		"an _id that is a fraction":       {true, []projection.Write{setting(1.5, 1)}, "not a string, a whole number or an object id"},
		"an _id that is missing":          {true, []projection.Write{setting(nil, 1)}, "not a string, a whole number or an object id"},
		"an _id with a NUL":               {true, []projection.Write{setting("a\x00", 1)}, "not a string, a whole number or an object id"},
		"a value that BSON does not know": {true, []projection.Write{setting("a", make(chan int))}, "document a"},
	} {
		p := inGo(t, projection.Code{Shared: tt.shared, Decide: writing(tt.writes...)})
		if _, err := p.Decide(change(t, `{}`)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
	p := inGo(t, projection.Code{Shared: true, Decide: writing(many[:1000]...)})
	if writes, err := p.Decide(change(t, `{}`)); err != nil || len(writes) != 1000 {
		t.Errorf("as many as there may be: got %d and %v", len(writes), err)
	}
}

// described is what a write asks for, as far as it tells one from another.
func described(writes []projection.Write) string {
	var all []string
	for i := range writes {
		w := &writes[i]
		all = append(all, fmt.Sprintf("%s %s %v keyed=%t passed=%t kept=%t complete=%t delete=%t %v",
			w.Projection, w.Collection, w.ID, w.Keyed, w.Passed, w.Kept, w.Complete != nil, w.Delete, w.Event != nil))
	}
	return strings.Join(all, "\n")
}

// A version shows how far it has come, whatever an event changes.
func TestCoded_DecidesLikeADeclaredOne(t *testing.T) {
	t.Parallel()
	declared := func(more, on string) projection.Projection {
		ps, err := projection.Parse("p.yaml", []byte("projections: [{name: p, collection: c, "+more+" on: {"+on+"}}]"))
		if err != nil {
			t.Fatal(err)
		}
		return ps[0]
	}
	set, nothing := "Happened: {set: {v: 1}}", "Happened: {when: 'data.a == 1', set: {v: 1}}"
	for name, tt := range map[string]struct {
		code projection.Code
		like projection.Projection
	}{
		"a write":                   {projection.Code{Decide: writing(setting("order-1", 1))}, declared("", set)},
		"a write of a version":      {projection.Code{Version: 2, Decide: writing(setting("order-1", 1))}, declared("version: 2,", set)},
		"a write of a key":          {projection.Code{Shared: true, Decide: writing(setting("k", 1))}, declared(`key: '"k"',`, set)},
		"a removal":                 {projection.Code{Decide: writing(projection.Write{ID: "order-1", Delete: true})}, declared("", "Happened: {delete: true}")},
		"nothing":                   {projection.Code{Decide: writing()}, declared("", nothing)},
		"nothing in a version":      {projection.Code{Version: 2, Decide: writing()}, declared("version: 2,", nothing)},
		"nothing of a key":          {projection.Code{Shared: true, Decide: writing()}, declared("key: data.a,", nothing)},
		"another type":              {projection.Code{Types: []string{"Other"}, Decide: writing()}, declared("", "Other: {delete: true}")},
		"another type in a version": {projection.Code{Types: []string{"Other"}, Version: 2, Decide: writing()}, declared("version: 2,", "Other: {delete: true}")},
		"another type of a key":     {projection.Code{Types: []string{"Other"}, Shared: true, Decide: writing()}, declared("key: data.a,", "Other: {delete: true}")},
		"the state":                 {projection.Code{State: true, Decide: writing()}, declared("", "Happened: {set: {v: 'state?.v ?? 1'}}")},
		"the state in a version":    {projection.Code{State: true, Version: 2, Decide: writing()}, declared("version: 2,", "Happened: {set: {v: 'state?.v ?? 1'}}")},
	} {
		c := change(t, `{"a":2}`)
		want, err := tt.like.Decide(c)
		if err != nil {
			t.Fatal(err)
		}
		coded := inGo(t, tt.code)
		got, err := coded.Decide(c)
		if err != nil || described(got) != described(want) {
			t.Errorf("%s: got\n%s and %v, want\n%s", name, described(got), err, described(want))
		}
		if v, is := projection.VersionOf(coded); is != (tt.code.Version > 0) || is && v != (projection.Version{Projection: "p", View: "c", Number: 2}) {
			t.Errorf("%s: got version %v, %t", name, v, is)
		}
	}
}

func TestCoded_LooksAtTheDocumentAsItIs(t *testing.T) {
	t.Parallel()
	p := inGo(t, projection.Code{State: true, Decide: func(_ *projection.Change, state bson.Raw) ([]projection.Write, error) {
		if state == nil {
			return []projection.Write{setting("order-1", "first")}, nil
		}
		if state.Lookup("v").StringValue() == "last" {
			return nil, nil
		}
		return nil, errors.New("it cannot go on")
	}})
	writes, err := p.Decide(change(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for state, want := range map[string]string{
		"": `{"$set":{"v":"first"}} false <nil>`, "last": " true <nil>", "other": ` false projection "p", event type "Happened": it cannot go on`,
	} {
		var document bson.Raw
		if state != "" {
			if document, err = bson.Marshal(bson.D{{Key: "v", Value: state}}); err != nil {
				t.Fatal(err)
			}
		}
		w, err := writes[0].Complete(document)
		update, _ := bson.MarshalExtJSON(w.Update, false, false)
		if got := fmt.Sprintf("%s %t %v", update, w.Kept, err); got != want {
			t.Errorf("state %q: got %s, want %s", state, got, want)
		}
	}
}

func TestCoded_ItsRevisionTellsItFromWhatItWas(t *testing.T) {
	t.Parallel()
	code := projection.Code{Name: "p", Collection: "c", Revision: "1", Types: []string{"A", "B"}, Decide: writing()}
	content := func(change func(*projection.Code)) string {
		changed := code
		change(&changed)
		p, err := projection.NewCoded(changed)
		if err != nil {
			t.Fatal(err)
		}
		return projection.Content(p)
	}
	same := content(func(*projection.Code) {})
	for name, change := range map[string]func(*projection.Code){
		"revision": func(c *projection.Code) { c.Revision = "2" }, "types": func(c *projection.Code) { c.Types = []string{"A"} },
		"shared": func(c *projection.Code) { c.Shared = true }, "state": func(c *projection.Code) { c.State = true },
	} {
		if content(change) == same {
			t.Errorf("another %s: the same content", name)
		}
	}
	for name, change := range map[string]func(*projection.Code){
		"version": func(c *projection.Code) { c.Version = 2 }, "order of types": func(c *projection.Code) { c.Types = []string{"B", "A"} },
	} {
		if content(change) != same {
			t.Errorf("another %s: another content", name)
		}
	}
	p, err := projection.NewCoded(code)
	if err != nil {
		t.Fatal(err)
	}
	if parts := (projection.Projections{p.Renumbered(3)}).Parts(); parts[0].Name != "p_v3" || parts[0].Content != same || fmt.Sprint(parts[0].Types) != "[A B]" {
		t.Errorf("got %v, want version 3 of the same", parts)
	}
}
