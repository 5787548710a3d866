package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/doctor"
)

const day = 24 * time.Hour

var settings = doctor.Settings{LockMargin: 2 * time.Second, RetryTime: time.Minute, TombstoneTTL: 30 * day}

func sound() doctor.Subscription {
	return doctor.Subscription{
		Topic: doctor.Topic{Name: "changes", Deduplicates: true, Window: 10 * time.Minute, TimeToLive: 14 * day},
		Name:  "projector", Active: true, RequiresSession: true, Lock: time.Minute, MaxDeliveries: 10,
		TimeToLive: doctor.Endless, DeadLettersStale: true, DeletedWhenIdle: doctor.Endless,
		Rules: []doctor.Rule{{Name: "some"}, {Name: "all", Everything: true}},
	}
}

func TestDoctor_WhatIsSoundIsNotFound(t *testing.T) {
	t.Parallel()
	subscription := sound()
	found := doctor.JudgeSubscription(&subscription, settings)
	subscription.TimeToLive, subscription.Topic.TimeToLive, subscription.DeadLettersStale = doctor.Endless, doctor.Endless, false
	found = append(found, doctor.JudgeSubscription(&subscription, settings)...)
	found = append(found, doctor.JudgeDatabase(&doctor.Database{Members: 2, Majority: 2, Lag: 999 * time.Millisecond}, settings)...)
	found = append(found, doctor.JudgeDatabase(&doctor.Database{}, settings)...)
	if len(found) != 0 {
		t.Errorf("found %+v, want nothing", found)
	}
}

func TestDoctor_EachThingThatIsWrongIsFoundWithItsFix(t *testing.T) {
	t.Parallel()
	subscription := func(change func(*doctor.Subscription)) []doctor.Finding {
		wrong := sound()
		change(&wrong)
		return doctor.JudgeSubscription(&wrong, settings)
	}
	database := func(d doctor.Database) []doctor.Finding { return doctor.JudgeDatabase(&d, settings) }
	with := func(change func(*doctor.Settings)) []doctor.Finding {
		s, changed := sound(), settings
		change(&changed)
		return doctor.JudgeSubscription(&s, changed)
	}
	type s = doctor.Subscription
	for name, tt := range map[string]struct {
		found    []doctor.Finding
		severity doctor.Severity
		says     string
	}{
		"positions that are lost":   {database(doctor.Database{PositionsLost: "of a"}), doctor.Fault, "lost positions"},
		"a stray document":          {database(doctor.Database{Unnoted: []string{"document \"x\" of"}}), doctor.Warning, `document "x" of`},
		"an emptied collection":     {database(doctor.Database{Emptied: []string{"documents of \"orders\" have vanished"}}), doctor.Fault, `documents of "orders" have vanished`},
		"a view that is not there":  {database(doctor.Database{Blind: map[string]string{"orders": ""}}), doctor.Warning, `no view "orders"`},
		"a view on nothing":         {database(doctor.Database{Blind: map[string]string{"orders": "orders_v2"}}), doctor.Warning, `"orders_v2", which is not there`},
		"no sessions":               {subscription(func(s *s) { s.RequiresSession = false }), doctor.Fault, "RequiresSession"},
		"a disabled subscription":   {subscription(func(s *s) { s.Active = false }), doctor.Fault, "Active"},
		"forwarding":                {subscription(func(s *s) { s.ForwardTo = "b" }), doctor.Fault, `"b"`},
		"forwarded dead letters":    {subscription(func(s *s) { s.ForwardDeadTo = "b" }), doctor.Warning, "ForwardDeadLettered"},
		"few deliveries":            {subscription(func(s *s) { s.MaxDeliveries = 9 }), doctor.Warning, "after 9 deliveries"},
		"dead letters":              {subscription(func(s *s) { s.DeadLetters = 1 }), doctor.Warning, "projector dlq"},
		"deleted when idle":         {subscription(func(s *s) { s.DeletedWhenIdle = day }), doctor.Warning, "AutoDeleteOnIdle"},
		"a long lock":               {subscription(func(s *s) { s.Lock = 2 * time.Minute }), doctor.Warning, "LockDuration to 1m"},
		"a lock for few retries":    {subscription(func(s *s) { s.Lock = 14 * time.Second }), doctor.Warning, "RETRY_TIME"},
		"a margin over a third":     {with(func(c *doctor.Settings) { c.LockMargin = 21 * time.Second }), doctor.Warning, "LOCK_MARGIN"},
		"messages without a trace":  {subscription(func(s *s) { s.DeadLettersStale = false }), doctor.Warning, "DeadLetteringOnMessageExpiration"},
		"a short life":              {subscription(func(s *s) { s.TimeToLive = time.Hour }), doctor.Warning, "for 1h0m0s"},
		"a short life by the topic": {subscription(func(s *s) { s.Topic.TimeToLive = time.Hour }), doctor.Warning, "for 1h0m0s"},
		"tombstones gone too soon":  {with(func(c *doctor.Settings) { c.TombstoneTTL = 14 * day }), doctor.Fault, "TOMBSTONE_TTL"},
		"no rule for everything":    {subscription(func(s *s) { s.Rules = s.Rules[:1] }), doctor.Fault, "filtered away"},
		"a rule with an action":     {subscription(func(s *s) { s.Rules[0].Acts = true }), doctor.Fault, `"some"`},
		"no duplicate detection":    {subscription(func(s *s) { s.Topic.Deduplicates = false }), doctor.Warning, `topic "changes"`},
		"a short window":            {subscription(func(s *s) { s.Topic.Window = 59 * time.Second }), doctor.Warning, "59s"},
		"a standalone server":       {database(doctor.Database{Standalone: true}), doctor.Fault, "transactions"},
		"a majority that is behind": {database(doctor.Database{Lag: time.Second}), doctor.Warning, "takes 1s or longer"},
		"no majority":               {database(doctor.Database{Members: 1, Majority: 2}), doctor.Fault, "1 members"},
		"a missing privilege":       {database(doctor.Database{Lacking: []doctor.Lack{{"find", "orders"}}}), doctor.Fault, "[find on orders]"},
		"a missing index":           {database(doctor.Database{WithoutIndex: []string{"orders"}}), doctor.Warning, "projector setup"},
		"an index with another time": {
			database(doctor.Database{OtherIndex: map[string]time.Duration{"orders": time.Hour}}), doctor.Warning, "1h0m0s",
		},
		"a skipped event":  {database(doctor.Database{Skipped: 1}), doctor.Warning, "projector skipped list"},
		"a halt":           {database(doctor.Database{Halted: 1}), doctor.Warning, "redrive"},
		"a parked message": {database(doctor.Database{Parked: 1}), doctor.Warning, "1 parked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(tt.found) != 1 {
				t.Fatalf("found %+v, want one thing", tt.found)
			}
			f := tt.found[0]
			if text := f.Subject + f.Problem + f.Fix; !strings.Contains(text, tt.says) || f.Fix == "" || f.Severity != tt.severity {
				t.Errorf("found %+v, want a %s that says %q, and a fix", f, tt.severity, tt.says)
			}
		})
	}
}

func TestDoctor_OnlyAFilterForTheGroupLetsThroughWhatItNeeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		group, filter string
		sound         bool
	}{
		"as documented":          {"shop", "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup = 'shop' OR cloudEvents_resendgroup LIKE 'shop/%'", true},
		"in another order":       {"shop", "(cloudEvents_resendgroup='shop') or (cloudEvents_resendgroup like 'shop/%')\nOR (CLOUDEVENTS_RESENDGROUP is  null)", true},
		"without what fills":     {"shop", "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup = 'shop'", false},
		"without the group":      {"shop", "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup LIKE 'shop/%'", false},
		"without everybody's":    {"shop", "cloudEvents_resendgroup = 'shop' OR cloudEvents_resendgroup LIKE 'shop/%'", false},
		"for another group":      {"shop", "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup = 'SHOP' OR cloudEvents_resendgroup LIKE 'SHOP/%'", false},
		"with another condition": {"shop", "a = 1 AND (b = 1 OR cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup = 'shop' OR cloudEvents_resendgroup LIKE 'shop/%' OR c = 1)", false},
		"of no name":             {"", "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup = '' OR cloudEvents_resendgroup LIKE '/%'", true},
		"of no name, in short":   {"", "cloudEvents_resendgroup IS NULL OR cloudEvents_resendgroup LIKE '/%'", true},
		"of no name, no version": {"", "cloudEvents_resendgroup IS NULL", false},
		"no filter of SQL":       {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, its := sound(), settings
			s.Rules, its.Group = []doctor.Rule{{Name: "some", SQL: tt.filter}}, tt.group
			found := doctor.JudgeSubscription(&s, its)
			if tt.sound != (len(found) == 0) {
				t.Errorf("found %+v, sound %t", found, tt.sound)
			}
		})
	}
}

func TestDoctor_APrivilegeCoversWhatItsResourceNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		resource bson.D
		lacks    []string
	}{
		"one collection":           {bson.D{{Key: "db", Value: "shop"}, {Key: "collection", Value: "orders"}}, []string{"find on totals"}},
		"a database":               {bson.D{{Key: "db", Value: "shop"}, {Key: "collection", Value: ""}}, nil},
		"every database":           {bson.D{{Key: "db", Value: ""}, {Key: "collection", Value: ""}}, nil},
		"a name in every one":      {bson.D{{Key: "db", Value: ""}, {Key: "collection", Value: "totals"}}, []string{"find on orders"}},
		"everything":               {bson.D{{Key: "anyResource", Value: true}}, nil},
		"another database":         {bson.D{{Key: "db", Value: "other"}, {Key: "collection", Value: ""}}, []string{"find on orders", "find on totals"}},
		"the cluster, no document": {bson.D{{Key: "cluster", Value: true}}, []string{"find on orders", "find on totals"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := bson.Marshal(bson.D{{Key: "resource", Value: tt.resource}, {Key: "actions", Value: bson.A{"insert", "find"}}})
			if err != nil {
				t.Fatal(err)
			}
			var p doctor.Privilege
			if err := bson.Unmarshal(document, &p); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range doctor.Lacking([]doctor.Privilege{p}, "shop", []string{"orders", "totals"}, []string{"find"}) {
				got = append(got, fmt.Sprint(l))
			}
			if !slices.Equal(got, tt.lacks) {
				t.Errorf("lacking: got %q, want %q", got, tt.lacks)
			}
		})
	}
}

func TestDoctor_DurationsAreReadAsTheServiceWritesThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"PT10M": 10 * time.Minute, "P14D": 14 * day, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"P10675199DT2H48M5.4775807S": doctor.Endless, "": doctor.Endless, "P1Y": doctor.Endless,
	} {
		if got := doctor.Duration(text); got != want {
			t.Errorf("Duration(%q) = %s, want %s", text, got, want)
		}
	}
}
