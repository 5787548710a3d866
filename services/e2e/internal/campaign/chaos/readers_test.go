package chaos

import (
	"math"
	"slices"
	"testing"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
)

// seenAs is a document of an aggregate at a version, as shadow.yaml has it.
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
		r := reader{visible: observable[witness.Mended], seen: map[string]observation{"a": {seenAs("a", 3), true}, "new": {}}}
		if f := r.judge(step.documents, func(string) bool { return false }); f.Count != step.want {
			t.Errorf("%s: got %v, want %d", name, f, step.want)
		}
		r = reader{visible: observable[witness.Mended], seen: map[string]observation{"a": {seenAs("a", 3), true}}}
		if f := r.judge(step.documents, func(id string) bool { return id == "a" }); f.Count != 0 || len(r.seen) != 0 {
			t.Errorf("%s, of a document that was damaged: got %v, and %v is followed", name, f, r.seen)
		}
	}
}

// placedAs is a document of an aggregate at a version, as orders.yaml has it, that was erased
// at one.
func placedAs(version, erasedAt int64) readDocument {
	d := readDocument{ID: "a", Events: version - erasedAt}
	d.Relay.Version, d.History = version, make([]string, min(d.Events, historyKept))
	return d
}

func TestReader_FindsWhatNoErasedDocumentCanBe(t *testing.T) {
	t.Parallel()
	gone := readDocument{}
	short := placedAs(40, 0)
	short.History = short.History[1:]
	for name, test := range map[string]struct {
		looks  []readDocument
		wrong  int
		erased []erasure
	}{
		"later ones":                   {[]readDocument{placedAs(3, 0), placedAs(3, 0), placedAs(40, 0)}, 0, nil},
		"an earlier one":               {[]readDocument{placedAs(3, 0), placedAs(2, 0)}, 1, nil},
		"a shorter history":            {[]readDocument{short}, 1, nil},
		"one without events":           {[]readDocument{placedAs(3, 3)}, 1, nil},
		"more events than its version": {[]readDocument{placedAs(3, -1)}, 1, nil},
		"one begun anew":               {[]readDocument{placedAs(3, 0), placedAs(9, 5), placedAs(10, 5)}, 0, []erasure{{"a", 5, 5}}},
		"one begun in its past":        {[]readDocument{placedAs(3, 0), placedAs(9, 2)}, 1, nil},
		"one that lacks its past":      {[]readDocument{placedAs(9, 5)}, 0, []erasure{{"a", 5, 5}}},
		"one that gets back its past":  {[]readDocument{placedAs(9, 5), placedAs(10, 0)}, 1, []erasure{{"a", 5, 5}}},
		"one that is gone":             {[]readDocument{placedAs(3, 0), gone, gone}, 0, []erasure{{"a", 4, math.MaxInt64}}},
		"one placed again":             {[]readDocument{placedAs(3, 0), gone, placedAs(5, 4)}, 0, []erasure{{"a", 4, math.MaxInt64}, {"a", 4, 4}}},
		"one that is back":             {[]readDocument{placedAs(3, 0), gone, placedAs(5, 0)}, 1, []erasure{{"a", 4, math.MaxInt64}}},
	} {
		r := reader{visible: observable[witness.Placed], seen: map[string]observation{"a": {}}}
		wrong := 0
		for _, d := range test.looks {
			documents := map[string]readDocument{}
			if d.ID != "" {
				documents["a"] = d
			}
			wrong += r.judge(documents, func(string) bool { return false }).Count
		}
		if wrong != test.wrong || !slices.Equal(r.erased, test.erased) {
			t.Errorf("%s: got %d wrong, and %v to explain, want %d and %v", name, wrong, r.erased, test.wrong, test.erased)
		}
	}
}

func TestReader_FindsWhatDocumentsOfManyLack(t *testing.T) {
	t.Parallel()
	before := readDocument{ID: "c", Orders: 3, Sum: 9, Lowest: 1, Highest: 5}
	for name, test := range map[string]struct {
		now  readDocument
		want int
	}{
		"the same":          {before, 0},
		"one more":          {readDocument{ID: "c", Orders: 4, Sum: 16, Lowest: 1, Highest: 7}, 0},
		"none":              {readDocument{}, 1},
		"one less":          {readDocument{ID: "c", Orders: 2, Sum: 9, Lowest: 1, Highest: 5}, 1},
		"a lower sum":       {readDocument{ID: "c", Orders: 3, Sum: 8, Lowest: 1, Highest: 5}, 1},
		"another lowest":    {readDocument{ID: "c", Orders: 3, Sum: 9, Lowest: 2, Highest: 5}, 1},
		"another highest":   {readDocument{ID: "c", Orders: 3, Sum: 9, Lowest: 1, Highest: 4}, 1},
		"too large a sum":   {readDocument{ID: "c", Orders: 3, Sum: 16, Lowest: 1, Highest: 5}, 1},
		"too small a sum":   {readDocument{ID: "c", Orders: 12, Sum: 11, Lowest: 1, Highest: 5}, 1},
		"none that is said": {readDocument{ID: "c"}, 1},
	} {
		r := reader{visible: observable[witness.Buyers], seen: map[string]observation{"c": {before, true}, "new": {}}}
		documents := map[string]readDocument{}
		if test.now.ID != "" {
			documents["c"] = test.now
		}
		if f := r.judge(documents, func(string) bool { return false }); f.Count != test.want {
			t.Errorf("%s: got %v, want %d", name, f, test.want)
		}
	}
}

func TestUnexplained_OnlyEventsErase(t *testing.T) {
	t.Parallel()
	erased := []erasure{{"a", 5, 5}, {"a", 6, math.MaxInt64}, {"a", 4, 4}, {"a", 10, math.MaxInt64}, {"b", 1, math.MaxInt64}}
	if f := unexplained(erased, map[string][]int64{"a": {5, 9}}); f.Count != 3 {
		t.Errorf("got %v, want 3: at 4, from 10 on, and of b", f)
	}
}

func TestJudgeRepairs_FailsWhereNothingWasLookedAtOrWhatNoDamageExplains(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		repairs *repairs
		want    bool
	}{
		"seen":                {&repairs{reads: 9, readsAnew: 1, judged: 1, rebuilt: map[string]int{witness.Placed: 1}}, true},
		"nothing of it":       {&repairs{reads: 9, judged: 1, rebuilt: map[string]int{witness.Placed: 1}}, false},
		"nothing sent again":  {&repairs{reads: 9, readsAnew: 1, rebuilt: map[string]int{witness.Placed: 1}}, false},
		"another one":         {&repairs{reads: 9, readsAnew: 1, judged: 1, rebuilt: map[string]int{witness.Mended: 1}}, false},
		"what nobody damaged": {&repairs{reads: 9, readsAnew: 1, judged: 1, rebuilt: map[string]int{witness.Placed: 1}, undamaged: validate.Findings{Count: 1}}, false},
		"a needless halt":     {&repairs{reads: 9, readsAnew: 1, judged: 1, rebuilt: map[string]int{witness.Placed: 1}, needless: validate.Findings{Count: 1}}, false},
	} {
		c := campaign{cfg: Config{Seed: 1, Plain: true, Repairs: "yes"}, repairs: test.repairs}
		var r report.Report
		if err := c.judgeRepairs(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Judge(); r.Passed != test.want {
			t.Errorf("%s: passed is %t, want %t: %v", name, r.Passed, test.want, r.Checks)
		}
	}
}

// Whichever view a seed builds anew, readers can judge it.
func TestReader_FollowsWhatIsBuiltAnew(t *testing.T) {
	t.Parallel()
	followed := map[string]bool{}
	for seed := range uint64(50) {
		c := campaign{cfg: Config{Seed: seed, Repairs: "yes"}}
		view := c.rebuilt()
		followed[view] = true
		if _, known := observable[view]; !known {
			t.Errorf("seed %d: %s is built anew, of which readers know nothing", seed, view)
		}
	}
	if len(followed) != len(observable) {
		t.Errorf("got %v, want each view by some seed", followed)
	}
}

func TestWordsOf_AreThoseOfAShell(t *testing.T) {
	t.Parallel()
	words, aggregates := wordsOf(`projector rebuild --projection mended --aggregate a --aggregate 'b c' --why 'it differs' --publisher /p`, anyDocument)
	if len(words) != 11 || words[0] != "rebuild" || words[8] != "it differs" || len(aggregates) != 2 || aggregates[1] != "b c" {
		t.Errorf("got %q and %q", words, aggregates)
	}
	words, aggregates = wordsOf("projector rebuild --projection mended --aggregate a --aggregate b", func(d document) bool { return d == document{"mended", "b"} })
	if want := []string{"rebuild", "--projection", "mended", "--aggregate", "b"}; !slices.Equal(words, want) || len(aggregates) != 1 {
		t.Errorf("with one that is not meant: got %q and %q, want %q", words, aggregates, want)
	}
}
