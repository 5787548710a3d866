package app_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/command"
)

// paused is a command that stands still before one of its requests to the read database.
type paused struct {
	done    chan outcome
	reached chan struct{}
	goOn    chan struct{}
}

// pause runs a command that stands still before the first request with some texts. Its
// environment is its own.
func pause(t *testing.T, texts []string, args ...string) *paused {
	t.Helper()
	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	p := &paused{make(chan outcome, 1), make(chan struct{}), make(chan struct{})}
	k := &killer{nth: 1, lives: true}
	for _, text := range texts {
		k.texts = append(k.texts, []byte(text))
	}
	k.kill = func() {
		close(p.reached)
		<-p.goOn
	}
	seen := &killer{texts: [][]byte{[]byte("$rebuild:")}, nth: 1, lives: true}
	loaded := make(chan struct{})
	seen.kill = func() { close(loaded) }
	t.Setenv("READMODEL_MONGODB_URI", "mongodb://"+seen.listen(t, k.listen(t, to.Host))+"/?directConnection=true")
	t.Setenv("READMODEL_TIMEOUT", "60s")
	go func() {
		lines, err := runCommand(t, args...)
		p.done <- outcome{lines, err}
	}()
	<-loaded
	t.Setenv("READMODEL_MONGODB_URI", servers.MongoURI)
	return p
}

// ends lets the command go on to its end.
func (p *paused) ends(t *testing.T) outcome {
	t.Helper()
	close(p.goOn)
	return ends(t, p.done)
}

// refusedBeforeIt checks that a command was refused because another has gone on.
func refusedBeforeIt(t *testing.T, o outcome) {
	t.Helper()
	if o.err == nil || !strings.Contains(o.err.Error(), "changed at the same time") {
		t.Errorf("got %v after %v, want it refused, since another command has gone on", o.err, o.lines)
	}
}

func (r *rebuilding) args(more ...string) []string {
	return append([]string{"rebuild", "--projection", "orders", "--why", "a test", "--publisher", r.publisher}, more...)
}

// toSwitch has a rebuild stand still at a request of its switch.
func (r *rebuilding) toSwitch(t *testing.T, texts ...string) *paused {
	t.Helper()
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	p := pause(t, texts, r.args("--grace", "0s")...)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.says(t, 2, "done")
	<-p.reached
	return p
}

func (r *rebuilding) change(t *testing.T, update bson.D) {
	t.Helper()
	if _, err := r.db.Collection("collection_owners").UpdateByID(t.Context(), rebuildRecord, update); err != nil {
		t.Fatal(err)
	}
}

// cancels runs a cancel to its end.
func (r *rebuilding) cancels(t *testing.T) {
	t.Helper()
	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--cancel"); err != nil || lines[len(lines)-1]["step"] != "done" {
		t.Errorf("cancel: got %v and %v", lines, err)
	}
}

// readers checks what they see, and which documents there are.
func (r *rebuilding) readers(t *testing.T, want string) {
	t.Helper()
	if got := r.collections(t) + ": " + r.sees(t, "orders", "a"); got != want {
		t.Errorf("readers and collections: got %s, want %s", got, want)
	}
}

// A rebuild that has found nothing against the switch is cancelled by another operator
// just before it: it does not switch readers to documents that are gone.
func TestRebuild_CancelledBesideItsSwitchItIsRefused(t *testing.T) {
	r := newRebuilding(t, "rebuild-two")
	p := r.toSwitch(t, "update", "$rebuild:orders:1", "heldUntil")
	r.cancels(t)
	refusedBeforeIt(t, p.ends(t))
	r.readers(t, "orders_v1: 2 3 [1 2]")
}

// While one command switches readers another waits, and is refused once that is done.
func TestRebuild_ASwitchUnderWayIsNotCancelled(t *testing.T) {
	r := newRebuilding(t, "rebuild-waits")
	p := r.toSwitch(t, "collMod")
	said, done := &logs{}, make(chan error, 1)
	go func() {
		_, err := command.Program("test").Do(context.WithoutCancel(t.Context()), []string{"rebuild", "--projection", "orders", "--cancel"}, said, said)
		done <- err
	}()
	until(t, "the cancel waits", func() bool { return strings.Contains(said.String(), "another command") })
	if o := p.ends(t); o.err != nil {
		t.Errorf("the switch: got %v after %v", o.err, o.lines)
	}
	refusedBeforeIt(t, outcome{err: <-done})
	r.readers(t, "orders_v2: 2 3 [1 2]")
}

// A command that stood still for so long in the middle of its switch that another has
// gone on without it finds that, and has readers see what that one has left.
func TestRebuild_ASwitchThatComesTooLateIsPutRight(t *testing.T) {
	r := newRebuilding(t, "rebuild-late-switch")
	p := r.toSwitch(t, "collMod")
	r.change(t, bson.D{{Key: "$set", Value: bson.D{{Key: "heldUntil", Value: time.Now().Add(-time.Second)}}}})
	r.cancels(t)
	refusedBeforeIt(t, p.ends(t))
	r.readers(t, "orders_v1: 2 3 [1 2]")
}

// A cancel that readers are switched beside, and for the whole grace, is refused before it
// acts on anything.
func TestRebuild_ACancelThatReadersAreSwitchedBesideIsRefused(t *testing.T) {
	r := newRebuilding(t, "rebuild-cancel-late")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	done := r.begin(t, "--grace", "1h")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	p := pause(t, []string{"startedBy"}, "rebuild", "--projection", "orders", "--cancel", "--publisher", r.publisher)
	<-p.reached
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.says(t, 2, "done")
	r.switched(t)
	r.says(t, 2, "running")
	refusedBeforeIt(t, p.ends(t))
	if strings.Contains(r.asked(), "resend cancel") {
		t.Errorf("asked: got %s, want no cancel of the resend", r.asked())
	}
	r.readers(t, "orders_v1 orders_v2: 2 3 [1 2]")
	r.cancels(t)
	refusedBeforeIt(t, ends(t, done))
}

// A switch of the command line that has found nothing against it is overtaken by a
// rebuild, the first and a later one: it does not switch readers to what was dropped.
func TestRebuild_BesideASwitchOneOfBothIsRefused(t *testing.T) {
	r := newRebuilding(t, "rebuild-beside")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	for version := 2; version <= 3; version++ {
		p := pause(t, []string{"parked_messages"}, "switch", "orders", "--to", fmt.Sprint(version-1))
		<-p.reached
		done := r.begin(t, "--grace", "0s")
		until(t, "the publisher is asked", func() bool { return strings.Contains(r.asked(), fmt.Sprintf("/orders_v%d ", version)) })
		send(t, r.topic, again(version, happens("a", 1, 2))...)
		r.says(t, version, "done")
		if o := ends(t, done); o.err != nil {
			t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
		}
		refusedBeforeIt(t, p.ends(t))
		r.readers(t, fmt.Sprintf("orders_v%d: 2 3 [1 2]", version))
	}
}

// While a rebuild is under way the command switch changes nothing, in no state: a version
// that is filled lacks events that do not come again, and the old one would be written no
// more. It says how to get there.
func TestRebuild_SwitchesAreItsOwn(t *testing.T) {
	r := newRebuilding(t, "rebuild-switches")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	done := r.begin(t, "--grace", "1h")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	refused := func(to int, way string) {
		t.Helper()
		for _, more := range [][]string{nil, {"--force"}, {"--dry-run"}} {
			lines, err := runCommand(t, append([]string{"switch", "orders", "--to", fmt.Sprint(to)}, more...)...)
			if err == nil || len(lines) > 0 || !strings.Contains(err.Error(), way) {
				t.Errorf("switch --to %d %v: got %v and %v, want it refused with the way: %s", to, more, lines, err, way)
			}
		}
	}
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.awaitSees(t, "orders_v2", "a", "2 3 [1 2]")
	refused(2, "rebuild --projection orders goes on, and switches to it once it has everything")
	r.says(t, 2, "done")
	r.switched(t)
	refused(1, "--cancel it leads back to version 1")
	send(t, r.topic, happens("a", 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	r.awaitSees(t, "orders_v1", "a", "3 6 [1 2 3]")
	r.cancels(t)
	refusedBeforeIt(t, ends(t, done))
	r.readers(t, "orders_v1: 3 6 [1 2 3]")
}

// switched waits until it is noted that readers were switched.
func (r *rebuilding) switched(t *testing.T) {
	t.Helper()
	until(t, "readers are switched", func() bool {
		n, err := r.db.Collection("collection_owners").CountDocuments(t.Context(), bson.D{{Key: "_id", Value: rebuildRecord}, {Key: "switchedAt", Value: bson.D{{Key: "$gt", Value: time.Time{}}}}})
		return err == nil && n == 1
	})
}

// stand has readers see a collection, behind all commands' backs.
func (r *rebuilding) stand(t *testing.T, on string) {
	t.Helper()
	if err := r.db.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "orders"}, {Key: "viewOn", Value: on}, {Key: "pipeline", Value: bson.A{}}}).Err(); err != nil {
		t.Fatal(err)
	}
}

// Where the view was changed by hand, no step goes on as if readers saw what the record
// says.
func TestRebuild_WhatReadersSeeByHandIsNotDropped(t *testing.T) {
	r := newRebuilding(t, "rebuild-by-hand")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	r.stand(t, "orders_v7")
	stopsFor(t, ends(t, r.begin(t)), "readers see version 7, and the projectors of this environment write version 1")
	r.stand(t, "orders_v1")

	done := r.begin(t, "--grace", "1h")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	r.stand(t, "orders_v7")
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.says(t, 2, "done")
	stopsFor(t, ends(t, done), "readers see version 7, which is neither")
	r.stand(t, "orders_v1")
	done = r.begin(t, "--grace", "1h")
	r.switched(t)
	// Whoever waits for the end of the grace is sent away, and comes back when it is over.
	r.change(t, bson.D{{Key: "$inc", Value: bson.D{{Key: "turn", Value: 1}}}, {Key: "$set", Value: bson.D{{Key: "switchedAt", Value: time.Now().Add(-2 * time.Hour)}}}})
	refusedBeforeIt(t, ends(t, done))
	r.stand(t, "orders_v1")
	o := ends(t, r.begin(t, "--grace", "1h"))
	stopsFor(t, o, "readers see version 1 again")
	if last := o.lines[len(o.lines)-1]; last["step"] != "settle" {
		t.Errorf("got the step %v, want settle", last["step"])
	}
	r.stand(t, "orders_v2")
	if o := ends(t, r.begin(t, "--grace", "1h")); o.err != nil {
		t.Errorf("the end: got %v after %v", o.err, o.lines)
	}
	r.change(t, bson.D{{Key: "$push", Value: bson.D{{Key: "retired", Value: 2}}}})
	stopsFor(t, ends(t, r.begin(t)), "readers see version 2, which is to be dropped")
	r.readers(t, "orders_v2: 2 3 [1 2]")
}

// busy has the publisher's command line refuse to resend, since it resends for a group.
func (r *rebuilding) busy(t *testing.T, group string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\ncd %s\ncase $2 in\nstatus) cat status 2>/dev/null || true;;\n"+
		"*) [ $4 != %[2]q ] || why=$8; echo '{\"id\":\"r0\",\"number\":1,\"state\":\"running\",\"group\":%[2]q,\"why\":\"'$why'\"}' >status; echo another resend of the stream has not ended >&2; exit 1;;\nesac\n", r.dir, group)
	if err := os.WriteFile(r.publisher, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
}

// A second command for the same projection, or for another one, says whose rebuild is under
// way, where the publisher only says that it resends something.
func TestRebuild_BesideAnotherItSaysWhoseThatIs(t *testing.T) {
	r := newRebuilding(t, "rebuild-whose")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	r.busy(t, "/orders_v2")
	_, err := runCommand(t, r.args()...)
	if err == nil || !strings.Contains(err.Error(), `a rebuild is under way of projection "orders", begun by `) || !strings.Contains(err.Error(), "(a test)") || !strings.Contains(err.Error(), "publisher resend status") || strings.Contains(err.Error(), "another resend") {
		t.Errorf("the same projection: got %v, want whose it is, and how to see it", err)
	}
	r.busy(t, "/orders_v2")
	_, err = runCommand(t, "rebuild", "--projection", "totals", "--why", "another", "--publisher", r.publisher)
	if err == nil || !strings.Contains(err.Error(), `one resend at a time, and a rebuild is under way of projection "orders", begun by `) {
		t.Errorf("another one: got %v, want whose it is", err)
	}
	r.busy(t, "")
	if err := os.Remove(filepath.Join(r.dir, "status")); err != nil {
		t.Fatal(err)
	}
	if _, err = runCommand(t, r.args()...); err == nil || !strings.Contains(err.Error(), "another resend of the stream has not ended") {
		t.Errorf("no rebuild's: got %v, want what the publisher says", err)
	}
}

// Of two commands that begin at the same moment one does, and the other says who has.
func TestRebuild_BegunByAnotherItSaysWho(t *testing.T) {
	r := newRebuilding(t, "rebuild-begun")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	p := pause(t, []string{"insert", "$rebuild:orders:1"}, r.args()...)
	<-p.reached
	first := make(chan outcome, 1)
	go func() {
		lines, err := runCommand(t, r.args()...)
		first <- outcome{lines, err}
	}()
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	o := p.ends(t)
	refusedBeforeIt(t, o)
	if o.err == nil || !strings.Contains(o.err.Error(), `a rebuild is under way of projection "orders", begun by `) {
		t.Errorf("got %v, want who has begun it", o.err)
	}
	r.cancels(t)
	refusedBeforeIt(t, <-first)
}
