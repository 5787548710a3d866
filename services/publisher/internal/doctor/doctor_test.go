package doctor_test

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/publisher/internal/doctor"
)

var settings = doctor.Settings{Takeover: 40 * time.Second, CompressAbove: 64 << 10}

func healthyTopic() doctor.Topic {
	return doctor.Topic{
		Name: "changes", Active: true, Deduplicates: true, Window: 10 * time.Minute, TimeToLive: 14 * 24 * time.Hour, Bytes: 79, MaxBytes: 100, MaxMessage: 256 << 10,
		Subscriptions: []doctor.Subscription{
			{Name: "projector", Active: true, RequiresSession: true, TimeToLive: 14 * 24 * time.Hour},
			{Name: "observer", Active: true, TimeToLive: time.Hour},
		},
	}
}

func TestDoctor_WhatIsWellIsNotFound(t *testing.T) {
	t.Parallel()
	found := doctor.JudgeTopic(healthyTopic(), settings)
	found = append(found, doctor.JudgeSource(doctor.Source{HistoryKnown: true, History: time.Minute, HistoryUncut: true, WithoutImages: []string{"a"}}, settings)...)
	found = append(found, doctor.JudgeSource(doctor.Source{HistoryKnown: true, History: 48 * time.Hour, WithoutImages: []string{"a"}}, settings)...)
	found = append(found, doctor.JudgeState(doctor.State{Lag: 999 * time.Millisecond, LeaseLag: 4 * time.Second})...)
	found = append(found, doctor.JudgeClock(9*time.Second)...)
	if len(found) != 0 {
		t.Errorf("found %+v, want nothing", found)
	}
}

func TestDoctor_EachThingThatIsWrongIsFoundWithItsFix(t *testing.T) {
	t.Parallel()
	topic := func(change func(*doctor.Topic)) []doctor.Finding {
		wrong := healthyTopic()
		change(&wrong)
		return doctor.JudgeTopic(wrong, settings)
	}
	source := func(src doctor.Source) []doctor.Finding {
		s := settings
		s.Images = true
		return doctor.JudgeSource(src, s)
	}
	mixed := settings
	mixed.Mixed = true
	partitioned := healthyTopic()
	partitioned.Partitioned = true
	for name, tt := range map[string]struct {
		found []doctor.Finding
		says  string
	}{
		"a disabled topic":             {topic(func(t *doctor.Topic) { t.Active = false }), "Active"},
		"no duplicate detection":       {topic(func(t *doctor.Topic) { t.Deduplicates = false }), "duplicate detection"},
		"a short window":               {topic(func(t *doctor.Topic) { t.Window = 20 * time.Second }), "DuplicateDetectionHistoryTimeWindow to 10m"},
		"a short life":                 {topic(func(t *doctor.Topic) { t.TimeToLive = time.Hour }), "DefaultMessageTimeToLive"},
		"a topic that fills up":        {topic(func(t *doctor.Topic) { t.Bytes = 81 }), "81 of 100 bytes"},
		"small messages":               {topic(func(t *doctor.Topic) { t.MaxMessage = 32 << 10 }), "set COMPRESS_ABOVE to 16384"},
		"no sessions":                  {topic(func(t *doctor.Topic) { t.Subscriptions[0].RequiresSession = false }), "RequiresSession"},
		"a disabled subscription":      {topic(func(t *doctor.Topic) { t.Subscriptions[1].Active = false }), `"observer"`},
		"messages that vanish":         {topic(func(t *doctor.Topic) { t.Subscriptions[0].TimeToLive = time.Hour }), "DeadLetteringOnMessageExpiration"},
		"mixed on a partitioned topic": {doctor.JudgeTopic(partitioned, mixed), "BATCHING=session"},
		"a refused stream":             {source(doctor.Source{HistoryKnown: true, History: 48 * time.Hour, Refusal: "no"}), "changeStream"},
		"an oplog that cannot be read": {source(doctor.Source{}), "local.oplog.rs"},
		"a short oplog":                {source(doctor.Source{HistoryKnown: true, History: time.Hour}), "1h0m0s"},
		"no pre-images":                {source(doctor.Source{HistoryKnown: true, History: 48 * time.Hour, WithoutImages: []string{"orders"}}), "changeStreamPreAndPostImages"},
		"a state out of reach":         {doctor.JudgeState(doctor.State{Refusal: "no"}), "grant find"},
		"a clock that is wrong":        {doctor.JudgeClock(-time.Hour), "differs from the source's by -1h0m0s"},
		"a source that is behind":      {source(doctor.Source{HistoryKnown: true, History: 48 * time.Hour, Lag: time.Second}), "published as much later"},
		"a state that is behind":       {doctor.JudgeState(doctor.State{Lag: 4400 * time.Millisecond, LeaseLag: 4500 * time.Millisecond}), "takes 4.4s until it has a write"},
		"a state that is far behind":   {doctor.JudgeState(doctor.State{Lag: 4500 * time.Millisecond, LeaseLag: 4500 * time.Millisecond}), "nobody leads"},
		"missing indexes":              {doctor.JudgeState(doctor.State{Missing: []string{"leader_leases"}}), "publisher setup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(tt.found) != 1 {
				t.Fatalf("found %+v, want one thing", tt.found)
			}
			f := tt.found[0]
			if text := f.Subject + f.Problem + f.Fix; !strings.Contains(text, tt.says) || f.Fix == "" || f.Severity == "" {
				t.Errorf("found %+v, want it to say %q, with a severity and a fix", f, tt.says)
			}
		})
	}
}

func TestDoctor_DurationsAreReadAsTheServiceWritesThem(t *testing.T) {
	t.Parallel()
	const endless = time.Duration(1<<63 - 1)
	for text, want := range map[string]time.Duration{
		"PT10M": 10 * time.Minute, "P14D": 14 * 24 * time.Hour, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"P10675199DT2H48M5.4775807S": endless, "": endless, "P1Y": endless,
	} {
		if got := doctor.Duration(text); got != want {
			t.Errorf("Duration(%q) = %s, want %s", text, got, want)
		}
	}
}
