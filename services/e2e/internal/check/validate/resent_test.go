package validate

import (
	"slices"
	"testing"

	"changerelay/services/e2e/internal/check/expect"
)

func live(aggregate string, version int64) Send { return Send{Event: Event{aggregate, version}} }

func again(aggregate string, version int64, id, group string) Send {
	return Send{Event: Event{aggregate, version}, Resend: expect.Resend{ID: id, Group: group}}
}

func TestResent_WhatOvertakesTheStreamIsFound(t *testing.T) {
	t.Parallel()
	sound := []Send{live("a", 1), again("a", 1, "r", ""), live("a", 2), again("a", 2, "r", ""), again("a", 1, "s", "")}
	if f := Overtaking(sound); f.Count != 0 {
		t.Errorf("events that came live first: got %v", f)
	}
	if f := Overtaking([]Send{live("a", 1), again("a", 2, "r", ""), live("a", 2)}); f.Count != 1 {
		t.Errorf("an event that came again first: got %v, want 1", f)
	}
}

func TestResent_EachResendIsInOrderByItself(t *testing.T) {
	t.Parallel()
	sound := []Send{again("a", 1, "r", ""), again("a", 2, "r", ""), again("a", 1, "s", ""), again("a", 1, "r", ""), again("a", 3, "r", ""), again("a", 2, "s", "")}
	if f := ResentInOrder(sound); f.Count != 0 {
		t.Errorf("two resends in order, with a repeat: got %v", f)
	}
	if f := ResentInOrder([]Send{again("a", 2, "r", ""), again("a", 1, "r", "")}); f.Count != 1 {
		t.Errorf("a resend out of order: got %v, want 1", f)
	}
}

func TestResent_WhatWasSelectedHasToCome(t *testing.T) {
	t.Parallel()
	asked := []Asked{{Resend: expect.Resend{ID: "r"}, Selected: slices.Values([]Event{{"a", 1}, {"a", 2}})}}
	if f := NotResent(asked, []Send{again("a", 1, "r", ""), again("a", 2, "r", ""), again("b", 1, "r", "")}); f.Count != 0 {
		t.Errorf("all that was selected, and more: got %v", f)
	}
	if f := NotResent(asked, []Send{again("a", 1, "r", ""), again("a", 2, "s", "")}); f.Count != 1 {
		t.Errorf("one that came by another resend alone: got %v, want 1", f)
	}
}

func TestResent_WhatWasNotSelectedIsFound(t *testing.T) {
	t.Parallel()
	may := map[string]func(Event) bool{"r": func(e Event) bool { return e.Version == 1 }}
	if f := Unselected(may, []Send{again("a", 1, "r", ""), again("b", 1, "r", ""), again("a", 2, "s", "")}); f.Count != 0 {
		t.Errorf("what was selected, and what came by a resend of which nothing is known: got %v", f)
	}
	if f := Unselected(may, []Send{again("a", 1, "r", ""), again("a", 2, "r", "")}); f.Count != 1 {
		t.Errorf("an event that was not selected: got %v, want 1", f)
	}
}

func TestResent_GroupsOfNobodyAreFound(t *testing.T) {
	t.Parallel()
	if f := ResentForNobody([]Send{again("a", 1, "r", ""), again("a", 1, "s", "x"), again("a", 1, "t", "y")}, map[string]bool{"": true, "x": true}); f.Count != 1 {
		t.Errorf("got %v, want that for y", f)
	}
}
