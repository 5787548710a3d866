package app_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/command"
)

// report is a file of what the publisher's command line says of its resends.
func report(t *testing.T, lines ...string) string {
	t.Helper()
	return file(t, "report", strings.Join(lines, ""))
}

// with is what the publisher says of a resend, with other fields.
func with(status string, fields string) string {
	return strings.Replace(status, `{"id":"r1"`, `{"id":"r1","later":{},`+fields, 1)
}

// Whoever runs the publisher's command line by hand hands on what it says of all resends: that
// is judged as where the rebuild runs it itself, and nobody's word is taken for it.
func TestRebuild_GoesByWhatThePublisherReports(t *testing.T) {
	r := newRebuilding(t, "rebuild-report")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	handOn := func(file string, more ...string) ([]map[string]any, error) {
		return runCommand(t, append([]string{"rebuild", "--projection", "orders", "--grace", "0s", "--resent", file}, more...)...)
	}
	lines, err := handOn(report(t), "--why", "a test")
	stopsFor(t, outcome{lines, err}, "no rebuild is under way")
	lines, err = runCommand(t, "rebuild", "--projection", "orders", "--why", "a test")
	const line = "publisher resend status --all --json | projector rebuild --projection orders --resent -"
	if err == nil || len(lines) == 0 || !strings.Contains(fmt.Sprint(lines[len(lines)-1]["waiting_for"]), line) {
		t.Fatalf("without the publisher's command line: got %v and %v, want it unfinished, and %s", lines, err, line)
	}
	send(t, r.topic, again(2, happens("a", 1, 2, 3))...)
	r.awaitSees(t, "orders_v2", "a", "3 6 [1 2 3]")

	ago := func(d time.Duration) time.Time { return time.Now().Add(-d).UTC().Truncate(time.Second) }
	if _, err := r.db.Collection("collection_owners").UpdateByID(t.Context(), rebuildRecord, bson.D{{Key: "$set", Value: bson.D{{Key: "beganAt", Value: ago(time.Hour)}}}}); err != nil {
		t.Fatal(err)
	}
	status := func(state string, failed int) string { return r.status(t, "orders", 2, state, failed) }
	now, then := ago(0).Format(time.RFC3339), ago(20*time.Minute).Format(time.RFC3339)
	of := func(n int, more string) string {
		return fmt.Sprintf(`"number":%d,"stream":"shop","source":%q%s`, n, event("a", 1, "Happened", "{}").Source, more)
	}
	const stranger = `{"id":"r0","number":1,"state":"done","group":"other","sent":3,"failed":0}` + "\n"
	done := with(status("done", 0), of(1, `,"reported_at":"`+now+`"`))
	for name, tt := range map[string]struct {
		report, refused string
		forced          bool // whether --force goes on
	}{
		"empty":           {"", "the report is empty", false},
		"of none of ours": {stranger, `no resend of everything that this rebuild has asked for: run the command as it is printed, with its --why, in the environment of the publisher of topic "rebuild-report"`, false},
		"not at its end":  {with(status("running", 0), of(1, "")), "the resend is running: once it has ended", false},
		"cancelled":       {with(status("cancelled", 0), of(1, "")), "the resend was cancelled", false},
		"with a failure":  {with(status("done", 1), of(1, "")), "1 events could not be resent", true},
		"short":           {with(status("incomplete", 0), of(1, `,"short":["some are gone"]`)), "has ended without all that was selected (some are gone)", true},
		"of the last one": {with(status("done", 0), of(2, "")), "where that has a gap, too, a record was lost, and --force goes on without it", true},
		"with a gap":      {with(status("done", 0), of(3, "")) + stranger, "does not have all resends since the rebuild began", true},
		"of two streams":  {with(status("done", 0), of(2, "")) + stranger, "of several streams", true},
		"of a while ago":  {with(status("done", 0), of(1, `,"reported_at":"`+then+`"`)), "the report is of " + then, true},
		"of long ago":     {with(status("done", 0), of(1, `,"reported_at":"2025-01-01T00:00:00Z"`)), "the report is of 2025-01-01T00:00:00Z, by the publisher's clock", true},
		"of others":       {with(status("done", 0), `"number":1,"source":"/other/events"`), "what was resent is of the source /other/events, and the documents of version 1 are of /", true},
	} {
		lines, err := handOn(report(t, tt.report))
		stopsFor(t, outcome{lines, err}, tt.refused)
		if name := name; len(lines) > 0 && lines[len(lines)-1]["step"] != "resend" {
			t.Errorf("a report %s: refused at %v, want it at once", name, lines[len(lines)-1]["step"])
		}
		if tt.forced {
			continue
		}
		if lines, err := handOn(report(t, tt.report), "--force"); err == nil {
			t.Errorf("a report %s, with --force: got %v, want it refused", name, lines)
		}
	}
	if _, err := handOn(report(t, done, "{")); err == nil || !strings.Contains(err.Error(), "resend 2 of") {
		t.Errorf("a report that is cut short: got %v, want it refused", err)
	}

	stdin, err := os.Open(report(t, done))
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stdin
	os.Stdin = stdin
	t.Cleanup(func() { os.Stdin = was; _ = stdin.Close() })
	if lines, err := handOn("-"); err != nil || lines[len(lines)-1]["step"] != "done" {
		t.Fatalf("a report of all of it: got %v and %v, want it done", lines, err)
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
}

// What an earlier release was told by a word alone is said to need the report, whatever stands
// behind it.
func TestRebuild_ResentWithoutAReportSaysWhatToType(t *testing.T) {
	const line = "publisher resend status --all --json | projector rebuild --projection orders --resent -"
	for _, args := range [][]string{
		{"--projection", "orders", "--resent"},
		{"--projection", "orders", "--resent", "--grace", "0s"},
		{"--projection", "orders", "--resent=true"},
		{"--projection", "orders", "--resent="},
	} {
		var said logs
		if exit := command.Program("test").Run(t.Context(), append([]string{"rebuild"}, args...), &said, &said); exit != cli.Misused || !strings.Contains(said.String(), line) {
			t.Errorf("%v: got exit status %d and %s, want a usage error with %s", args, exit, said.String(), line)
		}
	}
	if _, err := runCommand(t, "rebuild", "--projection", "orders", "--resent", "-", "--publisher", "publisher"); err == nil || !strings.Contains(err.Error(), "one of --publisher and --resent") {
		t.Errorf("with the publisher's command line: got %v, want one of both", err)
	}
}

// A resend that is not in what the publisher's command line prints may be one that has left
// something out.
func TestRebuild_ThePublisherPrintsAllResendsSinceItBegan(t *testing.T) {
	r := newRebuilding(t, "rebuild-lost")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	const stranger = `{"id":"r0","number":1,"state":"done","group":"other","sent":3,"failed":0}` + "\n"
	of := func(n int) string {
		return with(r.status(t, "orders", 2, "done", 0), fmt.Sprintf(`"number":%d`, n))
	}
	const lacks = "does not have all resends since the rebuild began"
	asked := r.asked()
	looks := func() {
		t.Helper()
		looked := r.looked()
		until(t, "it looks again", func() bool { return r.looked() > looked+1 })
	}
	r.prints(t, of(2))
	looks()
	r.says(t, 2, "running")
	looks()
	r.prints(t, of(3)+stranger)
	looks()
	if o := ends(t, r.begin(t)); o.err == nil || !strings.Contains(o.err.Error(), lacks) {
		t.Errorf("begun with a gap: got %v after %v, want to hear of it", o.err, o.lines)
	}
	if o := ends(t, r.begin(t, "--grace", "0s", "--force")); o.err != nil {
		t.Errorf("forced: got %v after %v, want it done", o.err, o.lines)
	}
	if lines, err := runCommand(t, "ledger"); err != nil || !strings.Contains(fmt.Sprint(lines), lacks) {
		t.Errorf("ledger: got %v and %v, want what was decided with --force", lines, err)
	}
	o := ends(t, done)
	if o.err == nil || strings.Count(fmt.Sprint(o.lines), lacks) != 2 {
		t.Errorf("without the first one, then with a gap: got %v after %v, want it to wait twice, and to say why", o.err, o.lines)
	}
	if got := strings.Count(fmt.Sprint(o.lines), "sent:5 state:running"); got != 1 {
		t.Errorf("while it runs and does not go on: got %d lines of %v, want one", got, o.lines)
	}
	if got := r.asked(); got != asked {
		t.Errorf("asked: got %s, want nothing more than %s", got, asked)
	}
}

// What was resent for the version since the rebuild began, and before it had asked for that
// itself, may have come to projectors of which some knew of the version.
func TestRebuild_WhatWasResentBeforeItsOwnResendCounts(t *testing.T) {
	r := newRebuilding(t, "rebuild-early")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	const early = `{"id":"r0","state":%q,"group":"/orders_v2","why":"a guess","selection":%s,"ended_at":%q,"sent":%d,"failed":0}` + "\n"
	const some, none = `{"where":"{}"}`, "null"
	at := func(from time.Duration) string { return time.Now().Add(from).UTC().Format(time.RFC3339) }
	after, apart, before := at(time.Second), at(-4*time.Minute), at(-time.Hour)
	own := r.status(t, "orders", 2, "done", 0)
	send(t, r.topic, again(2, happens("a", 1, 2, 3))...)
	r.write(t, own+fmt.Sprintf(early, "done", some, after, 2))
	stopsFor(t, ends(t, done), "resend r0 was for the version before this rebuild had asked for one")
	r.write(t, own+fmt.Sprintf(early, "cancelled", `{"since":"2026-01-01T00:00:00Z"}`, after, 1))
	stopsFor(t, ends(t, r.begin(t)), "resend r0 was for the version")
	r.write(t, own+fmt.Sprintf(early, "done", some, apart, 2))
	stopsFor(t, ends(t, r.begin(t)), "resend r0 was for the version") // by a clock that may be behind
	r.write(t, own+fmt.Sprintf(early, "done", none, before, 3)+fmt.Sprintf(early, "done", some, before, 2))
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Errorf("with what had ended before the rebuild began: got %v after %v", o.err, o.lines)
	}
}

// The state of a document makes up for all that was sent of it before: of documents, the last
// resend of everything counts alone.
func TestRebuild_OfDocumentsGoesByTheLastResendOfEverything(t *testing.T) {
	r := newRebuilding(t, "rebuild-documents")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	const of = `"mode":"documents"`
	short := with(r.status(t, "orders", 2, "incomplete", 1), of+`,"short":["nobody may see the collection"]`)
	r.write(t, short)
	o := ends(t, done)
	stopsFor(t, o, "without all that was selected (nobody may see the collection)")
	if last := fmt.Sprint(o.lines[len(o.lines)-1]["refused"]); strings.Contains(last, "--cancel") || !strings.Contains(last, "publisher resend --all --group /orders_v2 ") {
		t.Errorf("refused for %s, want it to say how everything is resent once more", last)
	}
	const few = `{"id":"r2","state":"done","group":"/orders_v2","mode":"documents","why":"another","selection":{"where":"{}"},"sent":1,"failed":1}` + "\n"
	r.write(t, few+with(r.status(t, "orders", 2, "done", 0), of)+few+short)
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Errorf("once all is resent: got %v after %v", o.err, o.lines)
	}
}

// The command for the publisher is not said before every projector knows of the version: who
// does not takes what is resent for another group's.
func TestRebuild_IsNotResentBeforeProjectorsKnowOfIt(t *testing.T) {
	r := newRebuilding(t, "rebuild-known")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	look := func() map[string]any {
		t.Helper()
		lines, err := runCommand(t, "rebuild", "--projection", "orders", "--dry-run")
		if err != nil || len(lines) != 1 {
			t.Fatalf("dry run: got %v and %v", lines, err)
		}
		return lines[0]
	}
	if line := look(); !strings.Contains(fmt.Sprint(line["command"]), "publisher resend --all --group /orders_v2 ") {
		t.Errorf("with a projector that knows of it: got %v, want the command", line)
	}
	r.stop()
	if line := look(); line["command"] != nil || !strings.Contains(fmt.Sprint(line["waiting_for"]), "to begin anew") {
		t.Errorf("with none: got %v, want it to wait for one", line)
	}
	keep(t, r.cfg, r.projections)
	r.cancels(t)
	ends(t, done)
}
