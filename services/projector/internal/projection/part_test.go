package projection_test

import (
	"testing"

	"changerelay/services/projector/internal/projection"
)

// Whoever writes a key in another way, or a comment behind it, has not changed it.
func TestParts_AKeyIsItsText(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"":                                   "",
		"    key: data.customer\n":           "data.customer",
		"    key: 'data.customer' # of it\n": "data.customer",
		"    key: |\n      data.customer\n":  "data.customer",
		"    key: 7\n":                       "7",
	} {
		projections, err := projection.Parse("test.yaml", []byte("projections:\n  - name: orders\n    collection: orders\n"+key+"    on: {Happened: {inc: {events: 1}}}\n"))
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if got := projections.Parts()[0].Key; got != want {
			t.Errorf("%q: got the key %q, want %q", key, got, want)
		}
	}
}
