package app_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// homeMade is a publisher as people write it: one leads by a lease of its own clock,
// sends what a change stream shows, and keeps the token behind it.
type homeMade struct {
	id            string
	source        *source
	lease, tokens *mongo.Collection
	sender        *azservicebus.Sender
	stop          context.CancelFunc
	done          sync.WaitGroup

	mu   sync.Mutex
	sent int // guarded by mu
}

const (
	homeLease = "changeStreamPublisher"
	homeToken = "orders"
	homeTTL   = 2 * time.Second
)

func startHomeMade(t *testing.T, servers testserver.Servers, source *source) *homeMade {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := client.NewSender(testserver.Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &homeMade{id: "pod-1", source: source, lease: state(t, servers, "leader_leases"), tokens: state(t, servers, "resume_tokens"), sender: sender, stop: stop}
	if !h.beat(ctx) {
		t.Fatal("the home-made publisher does not lead")
	}
	stream, err := source.Watch(ctx, mongo.Pipeline{}, options.ChangeStream())
	if err != nil {
		t.Fatal(err)
	}
	h.done.Go(func() { h.lead(ctx) })
	h.done.Go(func() { h.publish(ctx, stream) })
	t.Cleanup(func() {
		h.kill()
		_ = client.Close(context.Background())
	})
	return h
}

// kill ends it without a word, as SIGKILL does.
func (h *homeMade) kill() {
	h.stop()
	h.done.Wait()
}

func (h *homeMade) lead(ctx context.Context) {
	tick := time.NewTicker(homeTTL / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.beat(ctx)
		}
	}
}

// beat takes or renews the lease, and reports whether it leads.
func (h *homeMade) beat(ctx context.Context) bool {
	now := time.Now()
	_, err := h.lease.UpdateOne(ctx,
		bson.D{{Key: "_id", Value: homeLease}, {Key: "$or", Value: bson.A{
			bson.D{{Key: "leaderId", Value: h.id}}, bson.D{{Key: "expiresAt", Value: bson.D{{Key: "$lt", Value: now}}}},
		}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "leaderId", Value: h.id}, {Key: "expiresAt", Value: now.Add(homeTTL)}, {Key: "heartbeatAt", Value: now}}}},
		options.UpdateOne().SetUpsert(true))
	return err == nil
}

func (h *homeMade) publish(ctx context.Context, stream *mongo.ChangeStream) {
	defer stream.Close(context.WithoutCancel(ctx))
	for stream.Next(ctx) {
		event := stream.Current.Lookup("fullDocument").Document()
		aggregate := event.Lookup("aggregateId").StringValue()
		err := h.sender.SendMessage(ctx, &azservicebus.Message{
			SessionID: &aggregate, ApplicationProperties: map[string]any{"version": fmt.Sprint(event.Lookup("version").AsInt64())},
		}, nil)
		if err != nil {
			return
		}
		_, err = h.tokens.UpdateOne(ctx, bson.D{{Key: "_id", Value: homeToken}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: stream.ResumeToken()}}}}, options.UpdateOne().SetUpsert(true))
		if err != nil {
			return
		}
		h.mu.Lock()
		h.sent++
		h.mu.Unlock()
	}
}

func (h *homeMade) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent
}

// arrivals receives what either publisher has sent, until every event is there, and
// returns the versions of each aggregate in the order in which they came first.
func (s *source) arrivals(t *testing.T, servers testserver.Servers) map[string][]int {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	receiver, err := client.NewReceiverForSubscription(testserver.Topic, "observer", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	want, seen, first := 0, map[string]bool{}, map[string][]int{}
	for _, versions := range s.written {
		want += len(versions)
	}
	for len(seen) < want {
		some, err := receiver.ReceiveMessages(t.Context(), 500, nil)
		if err != nil {
			t.Fatalf("received %d of %d: %v", len(seen), want, err)
		}
		for _, m := range some {
			text, ofHome := m.ApplicationProperties["version"].(string)
			version, _ := strconv.Atoi(text)
			if !ofHome {
				version = order(t, []*azservicebus.ReceivedMessage{m}).versions[*m.SessionID][0]
			}
			key := fmt.Sprint(*m.SessionID, version)
			if !seen[key] {
				first[*m.SessionID] = append(first[*m.SessionID], version)
			}
			seen[key] = true
		}
	}
	return first
}

// TestAdopt_TakesOverUnderLoadAndLosesNothing cuts over from a home-made publisher that
// is stopped in the middle of what it sends, with events written before and after.
func TestAdopt_TakesOverUnderLoadAndLosesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	old := startHomeMade(t, servers, source)
	source.write(t, 60, 5)
	testserver.Eventually(t, "the home-made publisher to send", func() bool { return old.count() >= 20 })
	c := configured(servers)

	if _, err := say[command.AdoptView](t, c, "adopt", "--quiet", "1ms"); err == nil || !strings.Contains(err.Error(), `held by "pod-1"`) {
		t.Errorf("adopt beside a live lease = %v, want it refused by name", err)
	}
	seen, err := say[command.StreamView](t, c, "status")
	if said := strings.Join(seen.Warnings, " "); err != nil || !strings.Contains(said, `held by "pod-1", which is another program`) || !strings.Contains(said, "publisher adopt --dry-run") {
		t.Errorf("status warns of %q, %v, want the other program's lease and token named", seen.Warnings, err)
	}

	old.kill()
	source.write(t, 60, 5)
	var view command.AdoptView
	testserver.Eventually(t, "the lease of the dead process to end", func() bool {
		view, err = say[command.AdoptView](t, c, "adopt", "--dry-run")
		return err == nil
	})
	if view.Takes == nil || view.Takes.ID != homeToken || view.Takes.At == nil || !view.DryRun || len(view.Leases) != 1 || view.Leases[0].Leader != "pod-1" {
		t.Errorf("adopt --dry-run found %+v, want the lease of pod-1, and the token %s", view, homeToken)
	}
	if n, err := state(t, servers, "streams").CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("after a dry run there are %d records, %v, want none", n, err)
	}

	if _, err := say[command.AdoptView](t, c, "adopt", "--quiet", "10ms", "--why", "cut-over", "--who", "ops"); err != nil {
		t.Fatal(err)
	}
	if old.beat(t.Context()) {
		t.Error("a process of the other program that was forgotten leads again, want its lease taken")
	}
	p := run(t, c)
	source.write(t, 60, 5)
	p.await(t, "the stream to go on", func(s status.Status) bool { return leading(s) && s.Sent >= 120 })
	arrived := source.arrivals(t, servers)
	source.wantAll(t, received{versions: arrived})

	log := only(t, state(t, servers, "checkpoint_log"))
	if got := log.String(); log.Lookup("action").StringValue() != "adopt" || log.Lookup("who").StringValue() != "ops" || !strings.Contains(got, "adopted from orders of change_relay.resume_tokens: cut-over") {
		t.Errorf("the log says %s, want who adopted what and why", got)
	}
	if n, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(), bson.D{{Key: "decision", Value: bson.D{{Key: "$ne", Value: "began"}}}}); err != nil || n != 0 {
		t.Errorf("the ledger has %d gaps, %v, want none: nothing was passed over", n, err)
	}
	if _, err := say[command.AdoptView](t, c, "adopt", "--quiet", "1ms"); err == nil || !strings.Contains(err.Error(), "is this program's already") {
		t.Errorf("adopt once more = %v, want it refused", err)
	}
}

// TestAdopt_IsRefusedWhileAnythingMoves has a lease that is over by the server's clock,
// and a process whose own clock is behind and renews it.
func TestAdopt_IsRefusedWhileAnythingMoves(t *testing.T) {
	t.Parallel()
	for what, move := range map[string]func(t *testing.T, servers testserver.Servers){
		"resume token": func(t *testing.T, servers testserver.Servers) {
			t.Helper()
			edit(t, state(t, servers, "resume_tokens"), "$set", "token", bson.D{{Key: "_data", Value: "82FFFF"}})
		},
		"was there and is gone": func(t *testing.T, servers testserver.Servers) {
			t.Helper()
			wipe(t, state(t, servers, "resume_tokens"))
		},
		"was renewed": func(t *testing.T, servers testserver.Servers) {
			t.Helper()
			edit(t, state(t, servers, "leader_leases"), "$set", "expiresAt", time.Now().Add(-time.Minute))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			checkpoint, _ := published(t, servers, events(t, servers), 5)
			for _, collection := range []string{"resume_tokens", "streams", "stream_gaps", "leader_leases"} {
				wipe(t, state(t, servers, collection))
			}
			leave(t, servers, "leader_leases", bson.D{{Key: "_id", Value: homeLease}, {Key: "leaderId", Value: "pod-1"}, {Key: "expiresAt", Value: time.Now().Add(-time.Hour)}})
			leave(t, servers, "resume_tokens", bson.D{{Key: "_id", Value: homeToken}, {Key: "token", Value: checkpoint.Lookup("token")}})
			stderr := &onWrite{do: func() { move(t, servers) }}
			_, err := program(configured(servers)).Do(t.Context(), []string{"adopt", "--quiet", "100ms"}, &bytes.Buffer{}, stderr)
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("adopt = %v, want that the %s", err, what)
			}
			if n, err := state(t, servers, "streams").CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
				t.Errorf("there are %d records, %v, want none", n, err)
			}
		})
	}
}

// onWrite does something once, when the command says that it waits.
type onWrite struct {
	once sync.Once
	do   func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.once.Do(w.do)
	return len(p), nil
}

func leave(t *testing.T, servers testserver.Servers, collection string, document bson.D) {
	t.Helper()
	if _, err := state(t, servers, collection).InsertOne(t.Context(), document); err != nil {
		t.Fatal(err)
	}
}

func TestAdopt_TakesTokensInEveryForm(t *testing.T) {
	t.Parallel()
	for form, document := range map[string]func(token bson.RawValue) bson.D{
		"a raw token": func(token bson.RawValue) bson.D {
			return bson.D{{Key: "_id", Value: "x"}, {Key: "_data", Value: token.Document().Lookup("_data")}}
		},
		"a field of another name": func(token bson.RawValue) bson.D {
			return bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "resumeAfter", Value: token}}
		},
		"its text": func(token bson.RawValue) bson.D {
			return bson.D{{Key: "_id", Value: 7}, {Key: "resumeToken", Value: token.Document().Lookup("_data")}}
		},
		"under the stream's own name": func(token bson.RawValue) bson.D {
			return bson.D{{Key: "_id", Value: "shop.events"}, {Key: "token", Value: token}}
		},
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			checkpoint, _ := published(t, servers, source, 10)
			for _, collection := range []string{"resume_tokens", "streams", "stream_gaps", "leader_leases", "checkpoint_log"} {
				wipe(t, state(t, servers, collection))
			}
			leave(t, servers, "resume_tokens", document(checkpoint.Lookup("token")))
			source.write(t, 10, 5)
			if _, err := say[command.AdoptView](t, configured(servers), "adopt", "--quiet", "1ms"); err != nil {
				t.Fatal(err)
			}
			shown := run(t, configured(servers)).await(t, "the stream to go on", func(s status.Status) bool { return leading(s) && s.Sent >= 10 })
			if shown.Sent != 10 {
				t.Errorf("%d events were sent, want the 10 behind the token", shown.Sent)
			}
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

func TestAdopt_SaysWhatItDoesNotFind(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	if _, err := say[command.AdoptView](t, c, "adopt", "--dry-run"); err == nil || !strings.Contains(err.Error(), "no resume token of another program") {
		t.Errorf("adopt of nothing = %v", err)
	}
	for _, id := range []string{"a", "b"} {
		leave(t, servers, "tokens", bson.D{{Key: "_id", Value: id}, {Key: "token", Value: bson.D{{Key: "_data", Value: "ab"}}}})
	}
	if _, err := say[command.AdoptView](t, c, "adopt", "--dry-run"); err == nil || !strings.Contains(err.Error(), "choose one with --token ID") {
		t.Errorf("adopt of two = %v", err)
	}
	if _, err := say[command.AdoptView](t, c, "adopt", "--dry-run", "--token", "a"); err == nil || !strings.Contains(err.Error(), "none that a change stream gives out") {
		t.Errorf("adopt of no token = %v", err)
	}
}

func TestCheckpointSet_TakesARawToken(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	before, _ := published(t, servers, source, 10)
	source.write(t, 10, 5)
	data := before.Lookup("token", "_data").StringValue()
	for _, place := range []string{data, `{"_data": "` + data + `"}`, `{"_data": "` + strings.ToLower(data) + `"}`} {
		moved, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", place, "--dry-run")
		if err != nil || moved.After.Position != before.Lookup("position").StringValue() {
			t.Errorf("checkpoint set %s leads to %+v, %v, want %s", place, moved.After, err, before.Lookup("position"))
		}
	}
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", `{"_data": "`+data[:len(data)-4]+`"}`, "--dry-run"); err == nil {
		t.Error("checkpoint set with a token that was cut off: got no error")
	}
}
