package modify_test

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// takeLease is how a lease is taken in one round trip: by a pipeline on the
// server's clock that leaves a live lease of another's as it is.
func takeLease(t *testing.T, lease bson.Raw, who string, at time.Time) (bson.Raw, bool) {
	t.Helper()
	const free = `{"$or":[{"$eq":["$leaderId","%[1]s"]},{"$lt":[{"$ifNull":["$expiresAt",{"$date":"2001-01-01T00:00:00Z"}]},"$$NOW"]}]}`
	spec := querytest.Value(t, fmt.Sprintf(`[{"$set":{
		"leaderId":{"$cond":[`+free+`,"%[1]s","$leaderId"]},
		"expiresAt":{"$cond":[`+free+`,{"$add":["$$NOW",15000]},"$expiresAt"]},
		"epoch":{"$cond":[{"$and":[`+free+`,{"$ne":["$leaderId","%[1]s"]}]},{"$add":[{"$ifNull":["$epoch",0]},1]},"$epoch"]}}}]`, who))
	u, err := modify.Compile(spec, modify.Options{Env: expression.Env{Now: at}})
	if err != nil {
		t.Fatal(err)
	}
	if lease == nil {
		made, err := u.Upsert(querytest.Filter(t, `{"_id":"lease"}`))
		if err != nil {
			t.Fatal(err)
		}
		return made, true
	}
	applied, err := u.Apply(lease, nil)
	if err != nil {
		t.Fatal(err)
	}
	return applied.Doc, applied.Changed
}

func TestLease_ALeaseIsTakenByAPipelineOnTheServersClock(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_600_000_000_000)
	var lease bson.Raw
	for _, step := range []struct {
		name, who string
		at        time.Duration
		want      string
		changed   bool
	}{
		{"a free lease is taken", "me", 0, `{"_id":"lease","leaderId":"me","expiresAt":{"$date":"2020-09-13T12:26:55Z"},"epoch":1}`, true},
		{"its holder renews it", "me", 5 * time.Second, `{"_id":"lease","leaderId":"me","expiresAt":{"$date":"2020-09-13T12:27:00Z"},"epoch":1}`, true},
		{"another leaves it as it is", "you", 10 * time.Second, `{"_id":"lease","leaderId":"me","expiresAt":{"$date":"2020-09-13T12:27:00Z"},"epoch":1}`, false},
		{"at its very end it still holds", "you", 20 * time.Second, `{"_id":"lease","leaderId":"me","expiresAt":{"$date":"2020-09-13T12:27:00Z"},"epoch":1}`, false},
		{"expired, another takes it", "you", 20*time.Second + time.Millisecond, `{"_id":"lease","leaderId":"you","expiresAt":{"$date":"2020-09-13T12:27:15.001Z"},"epoch":2}`, true},
	} {
		var changed bool
		lease, changed = takeLease(t, lease, step.who, start.Add(step.at))
		if got := querytest.Relaxed(lease); got != step.want || changed != step.changed {
			t.Errorf("%s: got %s, changed %v, want %s, %v", step.name, got, changed, step.want, step.changed)
		}
	}
}
