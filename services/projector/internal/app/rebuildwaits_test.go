package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
)

// A document of a projection with a key may have an aggregate's id. It says nothing of how
// far the aggregate is: a session that is never empty is not waited for where the new
// version has what the old one has.
func TestRebuild_WaitsForNoAggregateThatHasAKeysName(t *testing.T) {
	r := newRebuilding(t, "rebuild-keysname")
	send(t, r.topic, happens("all", 1)...)
	until(t, "the first is counted", func() bool { return strings.HasPrefix(r.sees(t, "totals", "all"), "1 ") })
	send(t, r.topic, happens("b", 1, 2, 3)...)
	until(t, "all are counted", func() bool { return strings.HasPrefix(r.sees(t, "totals", "all"), "4 ") })
	done := r.begin(t, "--projection", "totals", "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return strings.Contains(r.asked(), "/totals_v2") })
	resent := func(events []contract.Event) {
		t.Helper()
		for i := range events {
			events[i].Resend = contract.Resend{ID: "r2", Group: "/totals_v2"}
		}
		send(t, r.topic, events...)
	}
	resent(happens("b", 1, 2, 3))
	until(t, "those of b are there", func() bool { return strings.HasPrefix(r.sees(t, "totals_v2", "all"), "3 ") })
	resent(happens("all", 1))
	until(t, "all are there", func() bool { return strings.HasPrefix(r.sees(t, "totals_v2", "all"), "4 ") })
	// Nobody else gets the session while it is held, so it has a message until the end.
	var held *azservicebus.SessionReceiver
	until(t, "the session is held", func() (is bool) {
		var err error
		held, err = servers.Client(t).AcceptSessionForSubscription(t.Context(), r.topic, "projector", "all", nil)
		return err == nil
	})
	send(t, r.topic, happens("all", 2)...)
	r.write(t, r.status(t, "totals", 2, "done", 0))
	var o outcome
	until(t, "the command ends", func() bool {
		if err := held.RenewSessionLock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		select {
		case o = <-done:
			return true
		default:
			return false
		}
	})
	if o.err != nil {
		t.Errorf("rebuild: got %v after %v", o.err, o.lines)
	}
	if err := held.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the last is counted", func() bool { return strings.HasPrefix(r.sees(t, "totals", "all"), "5 ") })
}

// leavesBehind has a script of the publisher's command line begin a program that keeps its
// output open, and end as more says, or with success.
func leavesBehind(t *testing.T, publisher string, more ...string) {
	t.Helper()
	script, err := os.ReadFile(publisher) //nolint:gosec // it is the test's
	if err != nil {
		t.Fatal(err)
	}
	script = append(script, "sleep 600 &\necho $! >>left\n"+strings.Join(more, "\n")+"\n"...)
	if err := os.WriteFile(publisher, script, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pids, _ := os.ReadFile(filepath.Join(filepath.Dir(publisher), "left"))
		for pid := range strings.FieldsSeq(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL) // it would end by itself
			}
		}
	})
}

// What runs the publisher's command line may leave programs behind that keep its output open.
// It has succeeded all the same.
func TestRebuild_WhatThePublisherLeavesBehindIsNoFailure(t *testing.T) {
	r := newRebuilding(t, "rebuild-behind")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	leavesBehind(t, r.publisher)
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("rebuild: got %v after %v", o.err, o.lines)
	}
}

// What runs the publisher's command line may have begun programs of its own, which outlive
// it and keep its output open. Nobody waits for them.
func TestRebuild_WaitsForNothingThatOutlivesThePublisher(t *testing.T) {
	r := newRebuilding(t, "rebuild-outlives")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	script := fmt.Sprintf("#!/bin/sh\ncd %s\nsleep 600 &\necho $! >began\nmv began child\nwait\n", r.dir)
	if err := os.WriteFile(r.publisher, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan outcome, 1)
	go func() {
		lines, err := runIn(ctx, t, r.args()...)
		done <- outcome{lines, err}
	}()
	var child int
	until(t, "the publisher's command line has begun another", func() bool {
		text, err := os.ReadFile(filepath.Join(r.dir, "child"))
		if err != nil {
			return false
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) }) // it would end by itself
	cancel()
	if o := ends(t, done); o.err == nil {
		t.Errorf("got %v, want the end to be told", o.lines)
	}
}
