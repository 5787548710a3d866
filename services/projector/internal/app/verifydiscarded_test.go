package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"changerelay/pkg/contract"
)

// A rebuild brings back what was discarded, in the documents that it builds and in no others.
// Both are right, and nothing replaces them.
func TestVerify_WhatARebuildHasBroughtBackIsRight(t *testing.T) {
	r := newRebuilding(t, "rebuild-brought")
	const (
		adds  = "{inc: {events: 1, sum: data.n}, push: {seen: data.n}}"
		wrong = `projections:
  - {name: orders, version: 1, collection: orders, on: {Happened: ` + adds + `, Failed: {set: {last: data.gone}}}}
  - {name: counts, collection: counts, on: {Happened: {inc: {events: 1}}, Failed: {inc: {events: 1}}}}
`
	)
	corrected := strings.Replace(wrong, "{set: {last: data.gone}}", adds, 1)
	r.restart(t, wrong)
	events := []contract.Event{happens("a", 1)[0], event("a", 2, "Failed", `{"n":2}`), happens("a", 3)[0]}
	send(t, r.topic, events...)
	until(t, "it is halted", func() bool {
		lines, err := runCommand(t, "parked", "list", "a")
		return err == nil && len(lines) == 2
	})
	for _, args := range [][]string{{"parked", "discard", "a", "a-2"}, {"parked", "redrive", "a"}} {
		if lines, err := runCommand(t, args...); err != nil {
			t.Fatalf("%v: got %v and %v", args, lines, err)
		}
	}
	r.awaitSees(t, "orders", "a", "2 4 [1 3]")
	r.restart(t, corrected)

	var source strings.Builder
	for _, e := range events {
		source.WriteString(line(t, e))
	}
	publisher := filepath.Join(t.TempDir(), "publisher")
	script := fmt.Sprintf("#!/bin/sh\ncat <<'end'\n%s{\"end\":{\"messages\":3,\"unmappable\":0}}\nend\n", source.String())
	if err := os.WriteFile(publisher, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	right := func() {
		t.Helper()
		for _, args := range [][]string{{"verify", "--aggregate", "a"}, {"verify"}, {"rebuild", "--aggregate", "a", "--why", "a test", "--force"}} {
			lines, err := runCommand(t, append(args, "--publisher", publisher)...)
			if err != nil || len(lines) != 1 {
				t.Errorf("%v: got %v and %v, want nothing that differs", args, lines, err)
			}
		}
	}
	right()
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, events)...)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	right()
	if got := r.sees(t, "orders", "a"); got != "3 6 [1 2 3]" {
		t.Errorf("afterwards: got %s, want what the rebuild has brought back", got)
	}
}
