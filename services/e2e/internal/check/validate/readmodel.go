package validate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences finds read documents that are not what a recomputation says:
// missing, too many, or with other fields. Values are compared as they are;
// callers bring both sides to one form first.
func Differences(want, got map[string]map[string]any) Findings {
	var f Findings
	for _, id := range slices.Sorted(maps.Keys(want)) {
		have, found := got[id]
		if !found {
			f.Add("%s is missing", id)
			continue
		}
		if diff := fieldsThatDiffer(want[id], have); len(diff) > 0 {
			f.Add("%s: %s", id, strings.Join(diff, ", "))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[id]; !found {
			f.Add("%s should not be there", id)
		}
	}
	return f
}

func fieldsThatDiffer(want, got map[string]any) []string {
	var diff []string
	for _, field := range slices.Sorted(maps.Keys(want)) {
		have, found := got[field]
		switch {
		case !found:
			diff = append(diff, fmt.Sprintf("%s is missing (want %v)", field, want[field]))
		case !reflect.DeepEqual(have, want[field]):
			diff = append(diff, fmt.Sprintf("%s is %v (want %v)", field, have, want[field]))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[field]; !found {
			diff = append(diff, fmt.Sprintf("%s is %v (want none)", field, got[field]))
		}
	}
	return diff
}
