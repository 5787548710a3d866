package mongostate_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestKeptAside_WhatWasCopiedIsToldFromWhatWasRead decides which way back there is.
func TestKeptAside_WhatWasCopiedIsToldFromWhatWasRead(t *testing.T) {
	t.Parallel()
	for from, want := range map[contract.Position]bool{
		contract.StreamPosition(7, 1, "8200000007"): false,
		contract.SnapshotPosition(7, 1, 0):          true,
		contract.SnapshotPosition(7, 1, 1<<62):      true,
		"":                                          true, // it is not known
	} {
		if got := (mongostate.KeptAside{Note: &checkpoint.Aside{From: from}}).OfCopy(); got != want {
			t.Errorf("%q is of a copy: %v, want %v", from, got, want)
		}
	}
}

// TestKeptAside_ANoteIsMadeUpForWhereNoPurgeIsUnderWay has notes beside what is found.
// A purge counts out what it removes, and removes it then: what it is about to remove
// must not be counted in again, or it would look lost.
func TestKeptAside_ANoteIsMadeUpForWhereNoPurgeIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		noted, purged, found int64
		purging              bool
		missing, want        int64 // afterwards
	}{
		"all there":                         {noted: 7, purged: 2, found: 5, want: 5},
		"some gone":                         {noted: 7, purged: 2, found: 4, missing: 1, want: 4},
		"more than noted":                   {noted: 7, purged: 2, found: 6, want: 6},
		"a purge before it removes":         {noted: 7, purged: 2, found: 7, purging: true, want: 5},
		"a purge that has removed":          {noted: 7, purged: 2, found: 5, purging: true, want: 5},
		"some gone, and a purge":            {noted: 7, purged: 2, found: 3, purging: true, missing: 2, want: 3},
		"more gone than a purge counts out": {noted: 7, purged: 9, found: 0, want: 0},
	} {
		kept := mongostate.KeptAside{
			Note: &checkpoint.Aside{Count: tt.noted}, Purged: tt.purged, Found: tt.found, Purging: tt.purging,
		}
		if got := kept.Missing(); got != tt.missing {
			t.Errorf("%s: %d are missing, want %d", name, got, tt.missing)
		}
		if got := kept.Settled().Count - tt.purged; got != tt.want {
			t.Errorf("%s: %d are noted afterwards, want %d", name, got, tt.want)
		}
	}
	fresh := mongostate.KeptAside{Purged: 3, Found: 5, Purging: true}
	if got := fresh.Settled().Count; fresh.Missing() != 0 || got != 5 {
		t.Errorf("without a note %d are missing and %d counted, want 0 and 5", fresh.Missing(), got)
	}
}

// TestKeptAside_ARetiredNoteIsMadeAfterTheOneThatWasRead has notes made from what was
// read before another was made, and of a partition that is in use.
func TestKeptAside_ARetiredNoteIsMadeAfterTheOneThatWasRead(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	checkpoints := testserver.Mongo(t).Database(name).Collection("resume_tokens")
	parked := mongostate.New(testserver.Mongo(t), name).Parked("orders")
	for stream, retired := range map[string]bool{"orders-0of2": true, "orders": false} {
		_, err := checkpoints.InsertOne(t.Context(), bson.D{
			{Key: "_id", Value: stream}, {Key: "retired", Value: retired}, {Key: "parked", Value: bson.D{{Key: "count", Value: int64(1)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		stream             string
		noted, found, want int64
	}{
		{"orders-0of2", 1, 2, 2},
		{"orders-0of2", 1, 3, 2},
		{"orders-0of2", 2, 0, 0},
		{"orders", 1, 2, 1},
	} {
		kept := mongostate.KeptAside{Stream: tt.stream, Note: &checkpoint.Aside{Count: tt.noted}, Found: tt.found}
		if err := parked.Settle(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		all, err := parked.KeptAside(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, now := range all {
			if now.Stream == tt.stream && now.Note.Count != tt.want {
				t.Errorf("%d found where %d were noted: %q has %d noted, want %d", tt.found, tt.noted, tt.stream, now.Note.Count, tt.want)
			}
		}
	}
}
