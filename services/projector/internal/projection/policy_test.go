package projection_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// three are projections of which all fail for an event whose n is a text.
func three(t *testing.T, first, second, third string) projection.Projections {
	t.Helper()
	text := "projections:\n"
	for i, policy := range []string{first, second, third} {
		name := string(rune('a' + i))
		text += "  - {name: " + name + ", collection: " + name + ", on: {Happened: {set: {n: data.n * 2}}}, " + policy + "}\n"
	}
	projections, err := projection.Parse("p.yaml", []byte(strings.ReplaceAll(text, ", }", "}")))
	if err != nil {
		t.Fatal(err)
	}
	return projections
}

// What becomes of an event that projections cannot decide about: each by its policy, and
// none applies anything where one of those that fail halts or stops.
func TestPolicy_SaysWhatBecomesOfAnEventThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policies [3]string
		standard projection.Policy
		data     string
		// want are the projections' letters: w for a write, s for skipped, d for
		// dead-lettered; else the action of the failure.
		want string
	}{
		"nothing fails":                       {[3]string{"onError: skip", "onError: stop", ""}, nil, `{"n":1}`, "www"},
		"no policy halts":                     {[3]string{"", "", ""}, nil, `{"n":"x"}`, "halt"},
		"all skip":                            {[3]string{"onError: skip", "onError: {evaluate: skip}", "onError: skip"}, nil, `{"n":"x"}`, "sss"},
		"a skip does not cover who halts":     {[3]string{"onError: skip", "", "onError: skip"}, nil, `{"n":"x"}`, "halt"},
		"stop goes before halt":               {[3]string{"", "onError: stop", "onError: skip"}, nil, `{"n":"x"}`, "stop"},
		"each by its own":                     {[3]string{"onError: skip", "onError: deadletter", "onError: skip"}, nil, `{"n":"x"}`, "sds"},
		"another class is not meant":          {[3]string{"onError: {store: skip, crash: skip}", "onError: skip", "onError: skip"}, nil, `{"n":"x"}`, "halt"},
		"the default is for what is not said": {[3]string{"onError: {store: halt}", "onError: {evaluate: deadletter}", ""}, projection.Policy{projection.Evaluate: projection.Skip}, `{"n":"x"}`, "sds"},
		"halt said is no default":             {[3]string{"onError: {evaluate: halt}", "", ""}, projection.Policy{projection.Evaluate: projection.Skip}, `{"n":"x"}`, "halt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policed := projection.Policed{Projections: three(t, c.policies[0], c.policies[1], c.policies[2]), Default: c.standard}
			writes, err := policed.Decide(change(t, c.data))
			if got := told(t, writes, err); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A failure is of the projection whose policy decides, and of none where a message kills
// processes. Each is asked once: one in Go may take long to fail.
func TestPolicy_BlamesWhomItIsOfAndAsksEachOnce(t *testing.T) {
	t.Parallel()
	asked := 0
	coded, err := projection.NewCoded(projection.Code{
		Name: "coded", Collection: "coded", Revision: "1", OnError: projection.Policy{projection.Evaluate: projection.Stop},
		Decide: func(*projection.Change, bson.Raw) ([]projection.Write, error) {
			asked++
			return nil, errors.New("of the code")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	policed := projection.Policed{Projections: append(three(t, "onError: skip", "", ""), coded)}
	happened := change(t, `{"n":"x"}`)
	_, err = policed.Decide(happened)
	if failure, is := errors.AsType[*projection.Failure](err); !is || failure.Projection != "coded" || failure.Action != projection.Stop || !strings.Contains(err.Error(), "of the code") || asked != 1 {
		t.Errorf("got %v, asked %d times, want the one that stops, asked once", err, asked)
	}
	_, err = policed.Projections.Decide(happened)
	if failure, is := errors.AsType[*projection.Failure](err); !is || failure.Projection != "a" || failure.Action != projection.Halt {
		t.Errorf("without policies: got %v, want the first one, which halts", err)
	}
	_, err = policed.Skip(happened, projection.Store, "refused", "c")
	if failure, is := errors.AsType[*projection.Failure](err); !is || failure.Projection != "c" {
		t.Errorf("refused: got %v, want it of the one that writes", err)
	}
	_, err = policed.Skip(happened, projection.Crash, "dead", "")
	if failure, is := errors.AsType[*projection.Failure](err); !is || failure.Projection != "" || failure.Action != projection.Halt {
		t.Errorf("dead: got %v, want it of none", err)
	}
}

// told says what writes are, or what their failure is.
func told(t *testing.T, writes []projection.Write, err error) string {
	t.Helper()
	if failure, is := errors.AsType[*projection.Failure](err); is {
		return string(failure.Action)
	}
	if err != nil {
		return err.Error()
	}
	letters := map[projection.Action]string{projection.Skip: "s", projection.DeadLetter: "d"}
	said := ""
	for _, w := range writes {
		switch {
		case w.Skipped == nil:
			said += "w"
		case w.Changes():
			t.Errorf("%s changes a document, and is skipped", w.Projection)
		default:
			said += letters[w.Skipped.Action]
		}
	}
	return said
}

// A message that kills processes is nobody's fault alone: all that follow it have a say,
// and where none does, it halts.
func TestPolicy_OfAMessageThatKillsAllFollowersDecide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policies  [3]string
		eventType string
		want      string
	}{
		"all skip":         {[3]string{"onError: {crash: skip}", "onError: skip", "onError: {crash: deadletter}"}, "Happened", "ssd"},
		"one says nothing": {[3]string{"onError: {crash: skip}", "", "onError: skip"}, "Happened", "halt"},
		"nobody follows":   {[3]string{"onError: skip", "onError: skip", "onError: skip"}, "Unheard", "halt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			happened := change(t, `{"n":1}`)
			happened.Type = c.eventType
			writes, err := projection.Policed{Projections: three(t, c.policies[0], c.policies[1], c.policies[2])}.Skip(happened, projection.Crash, "dead", "")
			if got := told(t, writes, err); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// What a version that is filled cannot apply is in the source: it is skipped instead of
// dead-lettered, whether it is resent or live, so that the version comes as far as the
// current one and goes on.
func TestPolicy_WhatFillsAVersionIsNotDeadLettered(t *testing.T) {
	t.Parallel()
	projections, err := projection.Parse("p.yaml", []byte("projections: [{name: p, version: 1, collection: c, onError: deadletter, on: {Happened: {set: {n: data.n * 2}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	other := projection.Projections{projections[0].(projection.Renumbered).Renumbered(2)}
	for name, tt := range map[string]struct {
		fills  string
		filled projection.Projections
		want   projection.Action
	}{
		"live":                            {"", nil, projection.DeadLetter},
		"resent":                          {"p_v1", nil, projection.Skip},
		"live, in one that is filled":     {"", projections, projection.Skip},
		"live, beside one that is filled": {"", other, projection.DeadLetter},
	} {
		c := change(t, `{"n":"x"}`)
		c.Fills = tt.fills
		writes, err := projection.Policed{Projections: projections, Filled: tt.filled}.Decide(c)
		if err != nil || len(writes) == 0 || writes[0].Skipped == nil || writes[0].Skipped.Action != tt.want {
			t.Errorf("%s: got %+v and %v, want it to %s", name, writes, err, tt.want)
		}
	}
}

// A message that kills processes is passed by where it fills a version that does not follow
// its event, whatever other projections do, and whatever the policy is: nothing of the
// version runs for it.
func TestPolicy_WhatAFilledVersionDoesNotFollowIsPassedBy(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"skip", "halt"} {
		projections, err := projection.Parse("p.yaml", []byte(`projections:
- {name: p, version: 2, collection: c, onError: `+policy+`, on: {Happened: {set: {n: data.n}}}}
- {name: other, collection: other, onError: `+policy+`, on: {Unheard: {set: {n: data.n}}}}
`))
		if err != nil {
			t.Fatal(err)
		}
		c := change(t, `{"n":1}`)
		c.Type, c.Fills = "Unheard", "p_v2"
		writes, err := projection.Policed{Projections: projections}.Skip(c, projection.Crash, "dead", "")
		if err != nil || len(writes) != 1 || writes[0].Projection != "p_v2" || !writes[0].Passed || writes[0].Skipped != nil {
			t.Errorf("%s: got %+v and %v, want the version to pass it by, with no record", policy, writes, err)
		}
	}
}

// What moves positions over an event that is skipped: the document's own, or the ledger's,
// or both. A dead letter moves none: it may be put back.
func TestPolicy_ASkipMovesThePositionAndADeadLetterDoesNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more string
		// kept and noted count writes that move a document's position and the ledger's.
		kept, noted int
	}{
		"a document of the aggregate's own": {"onError: skip", 1, 0},
		"with a version":                    {"version: 1, onError: skip", 1, 1},
		"with a key":                        {"key: data.k, onError: skip", 0, 1},
		"a dead letter":                     {"onError: deadletter", 0, 0},
		"a dead letter with a key":          {"key: data.k, onError: deadletter", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			projections, err := projection.Parse("p.yaml", []byte("projections: [{name: p, collection: c, on: {Happened: {set: {n: data.n * 2}}}, "+c.more+"}]"))
			if err != nil {
				t.Fatal(err)
			}
			wantMoved(t, projections, c.kept, c.noted)
		})
	}
}

// wantMoved has projections skip an event, and counts writes that move a document's
// position and the ledger's.
func wantMoved(t *testing.T, projections projection.Projections, kept, noted int) {
	t.Helper()
	writes, err := projection.Policed{Projections: projections}.Decide(change(t, `{"n":"x","k":"k"}`))
	if err != nil {
		t.Fatal(err)
	}
	gotKept, gotNoted, records := 0, 0, 0
	for _, w := range writes {
		switch {
		case w.Kept && w.ID == any("order-1"):
			gotKept++
		case w.Passed && w.Keyed:
			gotNoted++
		}
		if w.Skipped != nil {
			records++
		}
	}
	if gotKept != kept || gotNoted != noted || records != 1 {
		t.Errorf("got %d kept, %d noted and %d records, want %d, %d and one", gotKept, gotNoted, records, kept, noted)
	}
}

// A projection in Go skips as a declared one does, whichever way its positions are kept,
// also after it has been given another number.
func TestCoded_SkipsLikeADeclaredOne(t *testing.T) {
	t.Parallel()
	skip := projection.Policy{projection.Evaluate: projection.Skip}
	for name, c := range map[string]struct {
		code        projection.Code
		kept, noted int
	}{
		"a document of the aggregate's own": {projection.Code{OnError: skip}, 1, 0},
		"with a version":                    {projection.Code{OnError: skip, Version: 1}, 1, 1},
		"with keys of its own":              {projection.Code{OnError: skip, Shared: true}, 0, 1},
		"a dead letter":                     {projection.Code{OnError: projection.Policy{projection.Evaluate: projection.DeadLetter}, Version: 1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.code.Decide = func(*projection.Change, bson.Raw) ([]projection.Write, error) { panic("of the code") }
			p := inGo(t, c.code)
			wantMoved(t, projection.Projections{p}, c.kept, c.noted)
			if c.code.Version > 0 {
				wantMoved(t, projection.Projections{p.Renumbered(2)}, c.kept, c.noted)
			}
		})
	}
}

func TestPolicy_IsReadFromATextOrRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"skip":                         "skip skip skip",
		"evaluate=skip":                "skip halt halt",
		"store=deadletter, crash=stop": "halt deadletter stop",
		"ignore":                       `"ignore" is not one of skip, deadletter, halt, stop`,
		"evaluate=ignore":              `"ignore" is not one of`,
		"reading=skip":                 `"reading" is not one of evaluate, store, crash`,
		"skip,halt":                    `"skip" is not class=action`,
		"evaluate=skip,evaluate=halt":  "evaluate is there twice",
		"=skip":                        `"=skip" names no class`,
		"":                             `"" is not one of`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			p, err := projection.ParsePolicy(text)
			got := strings.Join([]string{string(p.On(projection.Evaluate)), string(p.On(projection.Store)), string(p.On(projection.Crash))}, " ")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Another policy is no other projection: nothing is built anew for it, and what is under
// way goes on.
func TestPolicy_IsNoPartOfWhatAProjectionSays(t *testing.T) {
	t.Parallel()
	content := func(more string) string {
		projections, err := projection.Parse("p.yaml", []byte("projections:\n  - name: p\n    collection: c\n"+more+"    on:\n      Happened: {set: {n: data.n}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return projection.Content(projections[0])
	}
	without := content("")
	for _, policy := range []string{"    onError: skip\n", "    onError:\n      evaluate: skip\n      crash: stop\n"} {
		if got := content(policy); got != without {
			t.Errorf("with %q: the content is %s, want %s", policy, got, without)
		}
	}
	for _, c := range [][2]string{
		{"    onError: ignore\n", `onError: "ignore" is not one of skip, deadletter, halt, stop`},
		{"    onError: {reading: skip}\n", `"reading" is not one of evaluate, store, crash`},
		{"    onError: [skip]\n", "onError is not a mapping"},
	} {
		if _, err := projection.Parse("p.yaml", []byte("projections:\n  - name: p\n    collection: c\n"+c[0]+"    on: {Happened: {set: {n: data.n}}}\n")); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got %v, want %s", c[0], err, c[1])
		}
	}
}
