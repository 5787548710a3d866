package app_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// loseView drops the readers' views, as nobody should.
func (v *versions) loseView(t *testing.T) {
	t.Helper()
	if err := errors.Join(v.client.Database(v.database).Collection("orders").Drop(t.Context()), v.client.Database(v.database).Collection("totals").Drop(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// sees fails unless readers see a version of orders.
func (v *versions) sees(t *testing.T, when string, want int) {
	t.Helper()
	v.use(2)
	version := projection.Version{Projection: "orders", Number: 2, View: "orders"}
	if got, err := v.old.Live(t.Context(), &version); err != nil || got != want {
		t.Errorf("%s: readers see version %d and %v, want %d", when, got, err, want)
	}
}

// What readers saw they see again, whichever version's setup finds that the view is
// gone; an empty version is never what they saw.
func TestSetup_ALostViewShowsAgainWhatReadersSaw(t *testing.T) {
	v := newVersions(t)
	setup := func(version int) error {
		v.use(version)
		_, err := runCommand(t, "setup")
		return err
	}
	if err := setup(1); err != nil {
		t.Fatal(err)
	}
	applied(t, v.old, 1, "a", 1, "Happened")
	v.loseView(t)
	if err := setup(2); err != nil {
		t.Fatal(err)
	}
	v.sees(t, "lost before version 2 is set up", 1)

	applied(t, v.new, 2, "a", 1, "Happened")
	v.use(2)
	switchTo(t, "orders", "2")
	v.loseView(t)
	if err := setup(1); err != nil {
		t.Fatal(err)
	}
	v.sees(t, "lost after the switch", 2)
}

// Of an older release nobody has noted what readers see: then it is what there is.
func TestSetup_ALostViewOfAnOlderReleaseIsNotGuessed(t *testing.T) {
	v := newVersions(t)
	v.use(1)
	applied(t, v.old, 1, "a", 1, "Happened")
	v.use(2)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.sees(t, "one version alone has documents", 1)

	forgotten := func() {
		t.Helper()
		v.loseView(t)
		if _, err := v.client.Database(v.database).Collection("collection_owners").DeleteMany(t.Context(), bson.D{{Key: "viewOn", Value: bson.D{{Key: "$exists", Value: true}}}}); err != nil {
			t.Fatal(err)
		}
	}
	forgotten()
	applied(t, v.new, 2, "a", 1, "Happened")
	if _, err := runCommand(t, "setup"); err == nil || !strings.Contains(err.Error(), "orders_v1, orders_v2") || !strings.Contains(err.Error(), "projector switch") {
		t.Errorf("both have documents: got %v, want both named, and what to do", err)
	}
	v.sees(t, "both have documents", 0)
	v.use(1)
	switchTo(t, "orders", "1", "--force")
	switchTo(t, "totals", "1", "--force")
	v.sees(t, "decided", 1)

	// What is there is noted by the next setup that may look.
	if _, err := v.client.Database(v.database).Collection("collection_owners").DeleteMany(t.Context(), bson.D{{Key: "viewOn", Value: "orders_v1"}}); err != nil {
		t.Fatal(err)
	}
	v.use(2)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.loseView(t)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.sees(t, "noted by setup", 1)
}

// Where what readers saw is gone itself, no other version stands in for it in
// silence, and the doctor says that readers see nothing.
func TestSetup_ALostViewIsNotPutOnACollectionThatIsGone(t *testing.T) {
	v := newVersions(t)
	v.use(1)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	applied(t, v.old, 1, "a", 1, "Happened")
	v.use(2)
	applied(t, v.new, 2, "a", 1, "Happened")
	switchTo(t, "orders", "2", "--force")
	switchTo(t, "totals", "2", "--force")
	if found, _, _ := examined(t, servers); strings.Contains(found, "readers see nothing") {
		t.Errorf("while all is there, the doctor finds\n%s", found)
	}
	db := v.client.Database(v.database)
	if err := errors.Join(db.Collection("orders_v1").Drop(t.Context()), db.Collection("orders_v2").Drop(t.Context())); err != nil {
		t.Fatal(err)
	}
	v.use(1)
	gone := func(when string) {
		t.Helper()
		if lines, err := runCommand(t, "setup"); err == nil || !strings.Contains(err.Error(), `"orders_v2", which is not there`) || !strings.Contains(err.Error(), "projector switch") {
			t.Errorf("%s: got %v and %v, want what is gone named, and what to do", when, lines, err)
		}
	}
	gone("the view is there")
	found, _, _ := examined(t, servers)
	wantAll(t, found, `has the view "orders" on "orders_v2", which is not there: readers see nothing`)
	v.loseView(t)
	gone("the view is lost, too")
	v.sees(t, "not known", 0)

	// A projector goes on: which version readers see is not for its start to say.
	cfg := v.config
	cfg.Group, cfg.Topic = "", "versions-live"
	p := start(t, cfg, load(t, v.files[1]))
	until(t, "it runs, or has ended", func() bool {
		return strings.Contains(p.logs.String(), "taking sessions") || strings.Contains(p.logs.String(), "projector stopped")
	})
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	v.sees(t, "after a start", 0)
	v.use(1)
	found, _, _ = examined(t, servers)
	wantAll(t, found, `has no view "orders": readers see nothing`)
	switchTo(t, "orders", "1", "--force")
	if _, err := runCommand(t, "setup"); err != nil {
		t.Errorf("decided: setup fails with %v", err)
	}
	v.sees(t, "decided", 1)
}
