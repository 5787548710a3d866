package modes

import (
	"reflect"
	"slices"
	"testing"
)

func TestDraw_TakesEveryValueOfEverySetting(t *testing.T) {
	t.Parallel()
	const seeds = 100
	for _, side := range []struct {
		choices []choice
		of      func(Mode) map[string]string
	}{
		{publisher, func(m Mode) map[string]string { return m.Publisher }},
		{projector, func(m Mode) map[string]string { return m.Projector }},
	} {
		for _, c := range side.choices {
			var seen []string
			for seed := range uint64(seeds) {
				seen = append(seen, side.of(Draw(seed))[c.name])
			}
			for _, value := range c.values {
				if !slices.Contains(seen, value) {
					t.Errorf("%s: %d seeds drew no %q", c.name, seeds, value)
				}
			}
		}
	}
}

func TestDraw_IsTheSameForASeed(t *testing.T) {
	t.Parallel()
	if one, again := Draw(3), Draw(3); !reflect.DeepEqual(one, again) {
		t.Errorf("got %v and %v, want the same", one, again)
	}
}

func TestString_SaysWhatIsNotTheDefault(t *testing.T) {
	t.Parallel()
	m := Mode{Publisher: map[string]string{"B": "2", "A": "1"}}
	if got, want := m.String(), "publishers: A=1 B=2; projectors: defaults"; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
}
