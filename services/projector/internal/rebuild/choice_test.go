package rebuild_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/rebuild"
)

const file = `projections:
  - {name: orders, version: 1, collection: orders, on: {Happened: {inc: {events: 1}}}}
`

// filling is a record of a projection of which version 2 is filled.
func filling(t *testing.T, following bool) (rebuild.Records, projection.Projections) {
	t.Helper()
	declared, err := projection.Parse("orders.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := projection.VersionOf(declared[0])
	r := rebuild.Record{}.Begin(&v, 1, "", "somebody", "a test", v1Began)
	if following {
		r = r.Follow()
	}
	return rebuild.Records{r}, declared
}

// v1Began is when rebuilds began.
var v1Began = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

// positions are how far documents are, by their collection, and projections in the ledger, by
// their name with a colon.
type positions map[string]delivery.Position

func (p positions) Position(_ context.Context, w *projection.Write) (delivery.Position, error) {
	if w.Keyed {
		return p[w.Projection+":"], nil
	}
	return p[w.Collection], nil
}

// step is an event: live, or resent for the version that is filled or for others.
type step struct {
	version int64 // negative where the source has none; then it is the place in the stream
	group   string
}

func live(version int64) step   { return step{version, ""} }
func resent(version int64) step { return step{version, "/orders_v2"} }

func (s step) event() contract.Event {
	e := contract.Event{ID: fmt.Sprint(s), Type: "Happened", AggregateID: "a", Operation: contract.Update, Version: contract.VersionOf(s.version)}
	e.Sequence = contract.SequenceOf(e.Version, "")
	if s.version < 0 {
		e.Version = contract.Version{}
		e.Sequence = contract.Sequence(contract.StreamPosition(1, uint32(-s.version), "82"))
	}
	if s.group != "" {
		e.Resend = contract.Resend{ID: "r", Group: s.group}
	}
	return e
}

func sequence(version int64) contract.Sequence { e := live(version).event(); return e.Sequence }

func TestChoice_AVersionTakesALiveEventOnlyBehindTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		next, current contract.Sequence
		// began is where the current version is known to have begun the aggregate.
		began contract.Sequence
		// passed is an event that the current version has passed by, and the first one of the ledger.
		passed    contract.Sequence
		following bool
		steps     []step
		// want are the versions of which each event is stored: c the current, n the next, and
		// n! over a hole.
		want string
	}{
		{name: "what is resent goes to the next version alone", current: sequence(3), steps: []step{resent(1), resent(2)}, want: "n n"},
		{name: "what is resent for another group goes to neither first", current: sequence(3), steps: []step{{1, "others"}}, want: "c"},
		{name: "a live event that is ahead is passed by", current: sequence(3), steps: []step{live(4)}, want: "c"},
		{name: "a live event between resent ones is passed by and comes again", current: sequence(3), steps: []step{resent(1), live(4), resent(2), resent(3), resent(4), live(5)}, want: "n c n n n cn"},
		{name: "the next one is taken", next: sequence(3), current: sequence(3), steps: []step{live(4), live(5)}, want: "cn cn"},
		{name: "a repeat is left to the guard", next: sequence(3), current: sequence(3), steps: []step{live(2)}, want: "cn"},
		{name: "an aggregate that begins", steps: []step{live(1), live(2)}, want: "cn cn"},
		{name: "an aggregate that begins with version 0", steps: []step{live(0), live(1)}, want: "cn cn"},
		{name: "version 1 of an aggregate that has a version 0", current: sequence(0), steps: []step{live(1)}, want: "c"},
		{name: "an aggregate whose live document is lost", steps: []step{live(4)}, want: "c"},
		{name: "a hole, while it is filled", next: sequence(3), current: sequence(3), steps: []step{live(5), live(6)}, want: "c c"},
		{name: "a hole that is resent", next: sequence(3), current: sequence(5), steps: []step{resent(5), live(6)}, want: "n! cn"},
		{name: "what is resent again", next: sequence(3), current: sequence(3), steps: []step{resent(1), resent(4)}, want: "n n"},
		{name: "a hole, once it follows", next: sequence(3), current: sequence(3), following: true, steps: []step{live(5), live(7)}, want: "cn cn"},
		{name: "behind, although it follows", next: sequence(3), current: sequence(4), following: true, steps: []step{live(5), live(6)}, want: "c c"},
		{name: "behind, and completed while it follows", next: sequence(3), current: sequence(5), following: true, steps: []step{live(6), resent(5), resent(6), live(7)}, want: "c n! n cn"},
		{name: "what was passed by is missing until it is resent", next: sequence(3), current: sequence(4), following: true, steps: []step{live(6), resent(4), live(7), resent(6), resent(7), live(9)}, want: "c n c n! n cn"},
		{name: "an aggregate that begins with another version, once it follows", following: true, steps: []step{live(7), live(8)}, want: "cn cn"},
		{name: "a first event that is lost, as is the live document", steps: []step{resent(2), resent(3)}, want: "n! n"},
		{name: "a first event that is lost, and an older release has written the live document", current: sequence(3), steps: []step{resent(2)}, want: "n!"},
		{name: "a first event that is lost, and the live version has passed by the next since", current: sequence(1), passed: sequence(2), steps: []step{resent(2)}, want: "n!"},
		{name: "a first event that is lost, and the live document was, too, and began again", current: sequence(5), began: sequence(5), steps: []step{resent(2), resent(3)}, want: "n! n"},
		{name: "an aggregate of which the source has no more", current: sequence(3), began: sequence(2), steps: []step{resent(2), resent(3)}, want: "n n"},
		{name: "a last event that is lost, as is the live document, once it follows", next: sequence(3), following: true, steps: []step{live(5), live(6)}, want: "cn! cn"},
		{name: "no event that is lost, once it follows", next: sequence(3), following: true, steps: []step{live(4)}, want: "cn"},
		{name: "without versions, what comes before the state that is resent", current: sequence(-3), steps: []step{live(-4), resent(-6), live(-7)}, want: "c n cn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			records, declared := filling(t, test.following)
			at := positions{"orders_v1": {Sequence: test.current, First: test.began}, "orders_v1:": {Sequence: test.passed, First: test.passed}, "orders_v2": {Sequence: test.next}}
			choice := rebuild.Filled("", records, declared, at).Begin()
			var got []string
			for _, s := range test.steps {
				e := s.event()
				chosen, err := choice.Of(t.Context(), &e, []projection.Write{{Projection: "orders_v1"}, {Projection: "orders_v2"}})
				if err != nil {
					t.Fatal(err)
				}
				to := ""
				for i := range chosen {
					to += map[string]string{"orders_v1": "c", "orders_v2": "n"}[chosen[i].Projection]
					if chosen[i].Lacks != "" {
						to += "!"
					}
				}
				got = append(got, to)
			}
			if all := strings.Join(got, " "); all != test.want {
				t.Errorf("got %q, want %q", all, test.want)
			}
		})
	}
}

// Numbers of versions are given out once, and one that a rebuild has is nobody else's.
func TestRecords_ANumberOfAVersionIsGivenOutOnce(t *testing.T) {
	t.Parallel()
	records, declared := filling(t, false)
	names := func() string {
		all, err := records.Versions(declared)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, p := range all {
			names = append(names, p.Name())
		}
		return strings.Join(names, " ")
	}
	v, _ := projection.VersionOf(declared[0])
	for _, test := range []struct {
		name, want string
		change     func(rebuild.Record) rebuild.Record
	}{
		{"filled", "orders_v1 orders_v2", func(r rebuild.Record) rebuild.Record { return r }},
		{"given up", "orders_v1", rebuild.Record.Abandon},
		{"begun again", "orders_v1 orders_v3", func(r rebuild.Record) rebuild.Record { return r.Begin(&v, 1, "", "", "", v1Began) }},
		{"settled", "orders_v3", func(r rebuild.Record) rebuild.Record { return r.Follow().Settle() }},
		{"begun beside a version that was built by hand", "orders_v3 orders_v10", func(r rebuild.Record) rebuild.Record { return r.Begin(&v, 9, "", "", "", v1Began) }},
	} {
		revision := records[0].Revision
		if records[0] = test.change(records[0]); records[0].Revision < revision {
			t.Errorf("%s: the revision went back", test.name)
		}
		if got := names(); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	if want := []int{2, 1}; !slices.Equal(records[0].Retired, want) {
		t.Errorf("to be dropped: got %v, want %v", records[0].Retired, want)
	}
	declared[0] = declared[0].(projection.Renumbered).Renumbered(2)
	if got := names(); !strings.Contains(got, "declare version 11") {
		t.Errorf("a declared version that a rebuild has had: got %s", got)
	}
	for number, want := range map[int]string{9: "orders_v9", 11: "orders_v11"} {
		declared[0] = declared[0].(projection.Renumbered).Renumbered(number)
		if got := names(); got != want {
			t.Errorf("a version that no rebuild has had: got %s, want %s alone", got, want)
		}
	}
	// A record of an earlier release has no more than the highest number.
	records[0].Given = nil
	for range 2 {
		declared[0] = declared[0].(projection.Renumbered).Renumbered(9)
		if got := names(); !strings.Contains(got, "declare version") {
			t.Errorf("a version below the highest number of an earlier release: got %s", got)
		}
		records[0] = records[0].Abandon().Begin(&v, 1, "", "", "", v1Began)
	}
}

// What a version that a rebuild has ended was to have, the one that is written has; a version
// with a number between theirs is another's.
func TestRecords_WhatFollowedAnEndedVersionFollowsTheCurrentOne(t *testing.T) {
	t.Parallel()
	records, declared := filling(t, false)
	v, _ := projection.VersionOf(declared[0])
	records[0] = records[0].Abandon().Begin(&v, 9, "", "", "", v1Began).Abandon()
	projections, err := records.Versions(declared)
	if err != nil {
		t.Fatal(err)
	}
	got := records.Decider(projections, declared).Followers("Happened")
	slices.Sort(got)
	if want := []string{"orders_v1", "orders_v10", "orders_v2"}; !slices.Equal(got, want) {
		t.Errorf("after rebuilds to versions 2 and 10 were given up: got %q, want %q", got, want)
	}
}

// A rebuild under way is outdated once its projection says something else, and that is
// noted once. What an earlier release has begun nobody knows of.
func TestRecords_AChangedProjectionOutdatesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	_, declared := filling(t, false)
	v, _ := projection.VersionOf(declared[0])
	began := rebuild.Record{}.Begin(&v, 1, projection.Content(declared[0]), "somebody", "a test", v1Began)
	other := rebuild.Record{}.Begin(&v, 1, "another", "somebody", "a test", v1Began)
	changed := other
	changed.Changed = true
	for _, test := range []struct {
		name   string
		record rebuild.Record
		want   int
	}{
		{"the same", began, 0},
		{"another", other, 1},
		{"another, once switched", other.Follow().Switch(v1Began), 1},
		{"another, which is noted", changed, 0},
		{"another, at its end", other.Follow().Settle(), 0},
		{"accepted", other.Accept(projection.Content(declared[0])), 0},
		{"of an earlier release", rebuild.Record{}.Begin(&v, 1, "", "somebody", "a test", v1Began), 0},
	} {
		if got := len(rebuild.Records{test.record}.Outdated(declared)); got != test.want {
			t.Errorf("%s: got %d outdated, want %d", test.name, got, test.want)
		}
	}
}
