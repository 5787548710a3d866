package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestAdmin_DefaultsAreTheServices(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		q, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		want := entity.QueueProperties{
			LockDuration: time.Minute, MaxSizeInMegabytes: 1024, MaxMessageSizeInKilobytes: 256,
			DuplicateDetectionHistoryTimeWindow: 10 * time.Minute, DefaultMessageTimeToLive: entity.Forever,
			MaxDeliveryCount: 10, AutoDeleteOnIdle: entity.Forever, Status: entity.StatusActive,
		}
		if q.Properties != want {
			t.Errorf("queue: got %+v, want %+v", q.Properties, want)
		}
	})
}

func TestAdmin_BadPropertiesAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		for _, p := range []entity.QueueProperties{
			{LockDuration: 5*time.Minute + 1},
			{LockDuration: -1},
			{MaxDeliveryCount: -1},
			{MaxDeliveryCount: 2001},
			{MaxSizeInMegabytes: -1},
			{MaxMessageSizeInKilobytes: 100<<10 + 1},
			{DuplicateDetectionHistoryTimeWindow: 19 * time.Second},
			{DuplicateDetectionHistoryTimeWindow: 8 * 24 * time.Hour},
			{DefaultMessageTimeToLive: time.Millisecond},
			{AutoDeleteOnIdle: time.Minute},
			{Status: "Sleepy"},
		} {
			_, err := b.CreateQueue("q", p)
			wantCondition(t, err, entity.ConditionArgument)
		}
		for _, name := range []string{"", "a b", "/a", "a/", "a/Subscriptions/b", "a?", "a$b", string(make([]byte, 261))} {
			_, err := b.CreateQueue(name, entity.QueueProperties{})
			wantCondition(t, err, entity.ConditionArgument)
		}
	})
}

func TestAdmin_EntitiesAreMadeOnceAndFoundInAnyCase(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		makeQueue(t, b, "some/Queue", entity.QueueProperties{})
		_, err := b.CreateQueue("CHANGES", entity.QueueProperties{})
		wantCondition(t, err, entity.ConditionEntityExists)
		_, err = b.CreateTopic("some/queue", entity.TopicProperties{})
		wantCondition(t, err, entity.ConditionEntityExists)
		_, err = b.CreateSubscription("Changes", "SUB", entity.SubscriptionProperties{})
		wantCondition(t, err, entity.ConditionEntityExists)
		_, err = b.CreateSubscription("some/queue", "sub", entity.SubscriptionProperties{})
		wantCondition(t, err, entity.ConditionNotFound)
		_, err = b.Queue("changes")
		wantCondition(t, err, entity.ConditionNotFound)
		_, err = b.Topic("some/queue")
		wantCondition(t, err, entity.ConditionNotFound)
		q, err := b.Queue("SOME/QUEUE")
		must(t, err)
		if q.Name != "some/Queue" {
			t.Errorf("name: got %q, want it as it was given", q.Name)
		}
	})
}

func TestAdmin_EntitiesAreListedByName(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		for _, name := range []string{"b", "C", "a"} {
			makeQueue(t, b, "q"+name, entity.QueueProperties{})
			_, err := b.CreateTopic("t"+name, entity.TopicProperties{})
			must(t, err)
			_, err = b.CreateSubscription("changes", name, entity.SubscriptionProperties{})
			must(t, err)
			_, err = b.CreateRule("changes", "sub", entity.Rule{Name: name})
			must(t, err)
		}
		var got []string
		for _, q := range b.Queues() {
			got = append(got, q.Name)
		}
		for _, topic := range b.Topics() {
			got = append(got, topic.Name)
		}
		subs, err := b.Subscriptions("changes")
		must(t, err)
		for _, s := range subs {
			got = append(got, s.Name)
		}
		rules, err := b.Rules("changes", "sub")
		must(t, err)
		for _, r := range rules {
			got = append(got, r.Name)
		}
		if want := "[qa qb qC changes ta tb tC a b C sub $Default a b C]"; fmt.Sprint(got) != want {
			t.Errorf("listed: got %v, want %s", got, want)
		}
	})
}

func TestAdmin_UpdatesDetachAndApply(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		r := openPlain(t, b, sub)
		_, err := b.UpdateSubscription("changes", "sub", entity.SubscriptionProperties{MaxDeliveryCount: 1})
		must(t, err)
		_, err = r.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionDetachForced)

		send(t, b, "changes", msg("m", ""))
		r = openPlain(t, b, sub)
		must(t, r.Settle(receive(t, r, 1)[0].LockToken, entity.Abandon{}))
		s, err := b.Subscription("changes", "sub")
		must(t, err)
		if s.Counts.DeadLetter != 1 {
			t.Errorf("dead letters: got %d, want 1", s.Counts.DeadLetter)
		}
		_, err = b.UpdateSubscription("changes", "sub", entity.SubscriptionProperties{RequiresSession: true})
		wantCondition(t, err, entity.ConditionArgument)
		_, err = b.UpdateTopic("changes", entity.TopicProperties{EnablePartitioning: true})
		wantCondition(t, err, entity.ConditionArgument)
		_, err = b.UpdateTopic("changes", entity.TopicProperties{MaxMessageSizeInKilobytes: 1})
		must(t, err)
		wantCondition(t, b.Send(t.Context(), "changes", []*entity.Message{{Payload: make([]byte, 1025)}}), entity.ConditionMessageSizeExceeded)
	})
}

func TestAdmin_DisabledEntities(t *testing.T) {
	for status, test := range map[entity.Status]struct{ sends, receives bool }{
		entity.StatusActive:          {true, true},
		entity.StatusDisabled:        {false, false},
		entity.StatusSendDisabled:    {false, true},
		entity.StatusReceiveDisabled: {true, false},
	} {
		t.Run(string(status), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *Broker) {
				makeQueue(t, b, "q", entity.QueueProperties{})
				r := openPlain(t, b, "q")
				_, err := b.UpdateQueue("q", entity.QueueProperties{Status: status})
				must(t, err)
				_, limitErr := b.MaxMessageBytes("q")
				check(t, "MaxMessageBytes", limitErr, test.sends)
				check(t, "Send", b.Send(t.Context(), "q", []*entity.Message{msg("m", "")}), test.sends)
				_, err = b.OpenReceiver(t.Context(), "q", ReceiverOptions{})
				check(t, "OpenReceiver", err, test.receives)
				_, err = r.Receive(t.Context(), 1)
				want := entity.ConditionDetachForced
				if !test.receives {
					want = entity.ConditionEntityDisabled
				}
				wantCondition(t, err, want)
			})
		})
	}
}

// check wants no error, or that the entity is disabled.
func check(t *testing.T, what string, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil {
		t.Errorf("%s: got error %v, want none", what, err)
	}
	if !allowed {
		wantCondition(t, err, entity.ConditionEntityDisabled)
	}
}

func TestAdmin_DeletionEndsReceiversAndForgets(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{RequiresDuplicateDetection: true, DefaultMessageTimeToLive: time.Hour}, entity.SubscriptionProperties{RequiresSession: true})
		sendIDs(t, b, "changes", "a", "a0", "a1")
		r := openNext(t, b, sub)
		receive(t, r, 1)
		waiting := make(chan error)
		go func() {
			_, err := b.OpenReceiver(t.Context(), sub, ReceiverOptions{Session: &SessionFilter{Next: true}})
			waiting <- err
		}()
		synctest.Wait()
		must(t, b.DeleteTopic("changes"))
		wantCondition(t, <-waiting, entity.ConditionNotFound)
		_, err := r.Receive(t.Context(), 1)
		wantCondition(t, err, entity.ConditionNotFound)
		wantCondition(t, b.Send(t.Context(), "changes", []*entity.Message{msg("m", "a")}), entity.ConditionNotFound)
		wantCondition(t, b.DeleteTopic("changes"), entity.ConditionNotFound)
		if got := b.alarms.Len(); got != 0 {
			t.Errorf("alarms left: got %d, want 0", got)
		}
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		must(t, b.DeleteSubscription("changes", "sub"))
		wantCondition(t, b.DeleteSubscription("changes", "sub"), entity.ConditionNotFound)
		send(t, b, "changes", msg("m", "")) // to nobody
		makeQueue(t, b, "q", entity.QueueProperties{})
		must(t, b.DeleteQueue("q"))
		wantCondition(t, b.DeleteQueue("q"), entity.ConditionNotFound)
	})
}

func TestAdmin_RulesCanBeChanged(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		must(t, b.DeleteRule("changes", "sub", entity.DefaultRule))
		send(t, b, "changes", msg("to nobody", ""))
		_, err := b.CreateRule("changes", "sub", entity.Rule{Name: "r", Filter: entity.SQLFilter{Expression: "sys.MessageId = 'a'"}})
		must(t, err)
		send(t, b, "changes", msg("a", ""), msg("b", ""))
		_, err = b.UpdateRule("changes", "sub", entity.Rule{Name: "R", Filter: entity.SQLFilter{Expression: "sys.MessageId = 'b'"}})
		must(t, err)
		send(t, b, "changes", msg("a", ""), msg("b", ""))
		ds, err := b.Peek(sub, 0, 10, nil)
		must(t, err)
		wantIDs(t, ds, "a b")

		_, err = b.CreateRule("changes", "sub", entity.Rule{Name: "r"})
		wantCondition(t, err, entity.ConditionEntityExists)
		_, err = b.CreateRule("changes", "sub", entity.Rule{Name: "bad", Filter: entity.SQLFilter{Expression: "a ="}})
		wantCondition(t, err, entity.ConditionArgument)
		_, err = b.UpdateRule("changes", "sub", entity.Rule{Name: "none"})
		wantCondition(t, err, entity.ConditionNotFound)
		wantCondition(t, b.DeleteRule("changes", "sub", "none"), entity.ConditionNotFound)
	})
}

func TestAdmin_IdleEntitiesAreDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		const idle = 5 * time.Minute
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{AutoDeleteOnIdle: idle})
		makeQueue(t, b, "q", entity.QueueProperties{AutoDeleteOnIdle: idle})
		time.Sleep(idle - time.Second)
		send(t, b, "changes", msg("m", ""))
		r := openPlain(t, b, "q") // keeps it in use
		time.Sleep(idle - time.Second)
		_, err := b.Subscription("changes", "sub")
		must(t, err)
		time.Sleep(2 * idle)
		_, err = b.Subscription("changes", "sub")
		wantCondition(t, err, entity.ConditionNotFound)
		_, err = b.Queue("q")
		must(t, err)
		r.Close()
		time.Sleep(2 * idle)
		_, err = b.Queue("q")
		wantCondition(t, err, entity.ConditionNotFound)
		_, err = b.Topic("changes")
		must(t, err)
	})
}

func TestAdmin_NothingIsAccessedBeforeItIsUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		queue, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		topic, err := b.CreateTopic("t", entity.TopicProperties{})
		must(t, err)
		if !queue.AccessedAt.IsZero() || !topic.AccessedAt.IsZero() {
			t.Errorf("accessed at: got %v and %v, want never", queue.AccessedAt, topic.AccessedAt)
		}
		sub, err := b.CreateSubscription("t", "s", entity.SubscriptionProperties{})
		must(t, err)
		topic, err = b.Topic("t")
		must(t, err)
		if topic.AccessedAt.IsZero() || sub.AccessedAt.IsZero() {
			t.Errorf("accessed at: got %v and %v after the subscription was made, want a time", topic.AccessedAt, sub.AccessedAt)
		}
	})
}

func TestAdmin_WhatExistsIsFoundByItsPath(t *testing.T) {
	inBubble(t, func(t *testing.T, b *Broker) {
		makeTopic(t, b, entity.TopicProperties{}, entity.SubscriptionProperties{})
		for _, path := range []string{"changes", "Changes", sub, sub + "/$DeadLetterQueue"} {
			must(t, b.Exists(path))
		}
		for _, path := range []string{"none", "changes/Subscriptions/none", "changes/$DeadLetterQueue"} {
			wantCondition(t, b.Exists(path), entity.ConditionNotFound)
		}
	})
}
