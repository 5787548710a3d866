package mapping_test

import "testing"

// Above 2^53 not every whole number is a double: two versions would be one.
func TestVersion_AsADoubleIsTakenWhereItIsExact(t *testing.T) {
	t.Parallel()
	for version, want := range map[float64]bool{1: true, 1<<53 - 1: true, 1 << 53: true, 1<<53 + 2: false, 1 << 60: false, 1.5: false} {
		got, _, err := newEvents(standard).Map(inserted(t, with("version", version)))
		if taken := err == nil && got.Version.Number == int64(version); taken != want {
			t.Errorf("%v: got %v and %v, want it taken: %v", version, got.Version, err, want)
		}
	}
}
