package scenario

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/poll"
)

const (
	// slowTopic is a world whose namespace takes 1,500 messages a second, and
	// refuses what is more until the next, as the service does.
	slowTopic = `{"base":"loopback","service_bus":{"credits_per_second":1500,"costs":{"send":1},"busy_wait":"2s"}}`
	// slowRate is what a copy is given time for: half of what the topic takes.
	slowRate = 750
)

// fault starts a fault of the sandbox's.
func (r *relay) fault(t *testing.T, body string) {
	t.Helper()
	r.ask(t, http.MethodPost, "/faults", body)
}

func (r *relay) ask(t *testing.T, method, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), method, r.Endpoints().SandboxStatusURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s %s: %s", method, path, body, response.Status)
	}
}

// A copy is read faster than a slow topic takes it, its publisher is killed and
// the topic throttled on the way: all arrives, in order. COPY_DOCUMENTS says how
// many documents there are; `make copy` sets it.
func TestCopy_AllArrivesOverATopicThatIsSlowerThanTheSource(t *testing.T) {
	t.Parallel()
	given := os.Getenv("COPY_DOCUMENTS")
	if given == "" {
		t.Skip("takes minutes: make copy")
	}
	documents, err := strconv.Atoi(given)
	if err != nil || documents < 1000 {
		t.Fatalf("COPY_DOCUMENTS is %q, not a number from 1000 on", given)
	}
	c := cluster.New(configure(t, func(c *cluster.Config) { c.PublisherEnv = map[string]string{"START_AT": "snapshot"} }))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watched(t, c)
	r.next = load.Laden(1, payload.AnyName, load.Generated(orders.NewGenerator(1, documents/2)))
	r.write(t, documents)
	r.ask(t, http.MethodPut, "/world", slowTopic)
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	// A kill must not be the end of what the copy had in hand.
	r.awaitSeen(t, documents/3)
	leader, status, found := r.Leader(within(t))
	if !found || status.Copy == nil {
		t.Fatalf("after a third: got no leader that copies (%+v)", status)
	}
	leader.Kill()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	r.awaitSeen(t, documents*2/3)
	r.fault(t, fmt.Sprintf(`{"kind":"servicebus.throttle","path":%q,"for":"3s"}`, r.Names().Topic))
	drain, cancel := context.WithTimeout(t.Context(), waitTimeout+time.Duration(documents/slowRate)*time.Second)
	defer cancel()
	if err := r.witness.AwaitDrain(drain); err != nil {
		t.Error(err)
	}
	r.judge(t, witness.Copied)
}

// awaitSeen waits until n messages were seen on the topic.
func (r *relay) awaitSeen(t *testing.T, n int) {
	t.Helper()
	wait, cancel := context.WithTimeout(t.Context(), waitTimeout+time.Duration(n/slowRate)*time.Second)
	defer cancel()
	err := poll.Until(wait, fmt.Sprintf("%d messages on the topic", n), func(context.Context) (bool, string) {
		seen := r.witness.Observer.Count()
		return seen >= n, fmt.Sprint(seen)
	})
	if err != nil {
		t.Fatal(err)
	}
}
