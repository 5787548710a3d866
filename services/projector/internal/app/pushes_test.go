package app_test

import (
	"fmt"
	"testing"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// Events that keep different numbers of the last elements of one list end as they do one
// by one, also where they come in one batch.
func TestProjection_PushesThatKeepDifferentNumbersAreNotFolded(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	projections, err := projection.Parse("test.yaml", []byte(`
projections:
- name: lists
  collection: lists
  on:
    Long: {push: {seen: {value: event.version, last: 5}}}
    Short: {push: {seen: {value: event.version, last: 2}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	send(t, "pushes", event("a", 1, "Long", `{}`), event("a", 2, "Long", `{}`), event("a", 3, "Long", `{}`), event("a", 4, "Short", `{}`), event("a", 5, "Long", `{}`))
	p := start(t, configured(t, "pushes", database), projections)
	until(t, "all are applied", func() bool { return p.Status().Applied == 5 })
	if got := seen(sandboxtest.Documents(t, client.Database(database), "lists")["a"]); fmt.Sprint(got) != "[3 4 5]" {
		t.Errorf("got %v, want the last two of the first four, and the fifth", got)
	}
}
