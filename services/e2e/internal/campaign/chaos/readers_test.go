package chaos

import "testing"

// seenAs is a document of an aggregate at a version.
func seenAs(id string, version int64) readDocument {
	d := readDocument{ID: id, Events: version, Sum: version * (version + 1) / 2}
	for v := max(1, version-tailKept+1); v <= version; v++ {
		d.Tail = append(d.Tail, v)
	}
	d.Relay.Version = version
	return d
}

func TestReader_FindsWhatIsNeitherOldNorNew(t *testing.T) {
	t.Parallel()
	altered := func(change func(*readDocument)) readDocument {
		d := seenAs("a", 70)
		change(&d)
		return d
	}
	for name, step := range map[string]struct {
		documents map[string]readDocument
		want      int
	}{
		"the same":                      {map[string]readDocument{"a": seenAs("a", 3)}, 0},
		"a later one":                   {map[string]readDocument{"a": seenAs("a", 100)}, 0},
		"none":                          {nil, 1},
		"an earlier one":                {map[string]readDocument{"a": seenAs("a", 2)}, 1},
		"fewer events than its version": {map[string]readDocument{"a": altered(func(d *readDocument) { d.Events-- })}, 1},
		"others in their place":         {map[string]readDocument{"a": altered(func(d *readDocument) { d.Sum++ })}, 1},
		"another order":                 {map[string]readDocument{"a": altered(func(d *readDocument) { d.Tail[0], d.Tail[1] = d.Tail[1], d.Tail[0] })}, 1},
		"a shorter tail":                {map[string]readDocument{"a": altered(func(d *readDocument) { d.Tail = d.Tail[1:] })}, 1},
	} {
		r := reader{seen: map[string]int64{"a": 3, "new": 0}}
		if f := r.judge(step.documents, func(string) bool { return false }); f.Count != step.want {
			t.Errorf("%s: got %v, want %d", name, f, step.want)
		}
		r = reader{seen: map[string]int64{"a": 3}}
		if f := r.judge(step.documents, func(id string) bool { return id == "a" }); f.Count != 0 || len(r.seen) != 0 {
			t.Errorf("%s, of a document that was damaged: got %v, and %v is followed", name, f, r.seen)
		}
	}
}

func TestWordsOf_AreThoseOfAShell(t *testing.T) {
	t.Parallel()
	words, aggregates := wordsOf(`projector rebuild --projection mended --aggregate a --aggregate 'b c' --why 'it differs' --publisher /p`)
	if len(words) != 11 || words[0] != "rebuild" || words[8] != "it differs" || len(aggregates) != 2 || aggregates[1] != "b c" {
		t.Errorf("got %q and %q", words, aggregates)
	}
}
