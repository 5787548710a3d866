package witness

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/poll"
)

// mended is a document that was built anew, as shadow.yaml has it, at a version of its
// aggregate.
func (s *stage) mended(t *testing.T, aggregate string, version int64) bson.D {
	t.Helper()
	e := event(aggregate, version)
	tail := bson.A{}
	for v := range version {
		tail = append(tail, v+1)
	}
	return bson.D{
		{Key: "_id", Value: aggregate},
		{Key: "events", Value: version},
		{Key: "sum", Value: version * (version + 1) / 2},
		{Key: "tail", Value: tail},
		{Key: "id", Value: s.messageID(t, aggregate, version)},
		{Key: "type", Value: e.Type},
		{Key: "time", Value: e.Time},
		{Key: "data", Value: bson.D{{Key: "n", Value: version}}},
		{Key: "_relay", Value: bson.D{
			{Key: "eventId", Value: s.messageID(t, aggregate, version)},
			{Key: "eventType", Value: e.Type},
			{Key: "eventTime", Value: e.Time},
			{Key: "sequence", Value: "000000000000000000" + string(rune('0'+version))},
			{Key: "aggregateVersion", Value: version},
		}},
	}
}

// What was built anew is judged as readers see it, and what differs is named one by one.
func TestJudge_FindsWhatWasBuiltAnewWrong(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Shadowed.Repaired())
	for _, aggregate := range []string{"added to", "altered", "behind", "lost", "right"} {
		s.write(t, aggregate, 1)
		s.write(t, aggregate, 2)
	}
	altered := append(s.mended(t, "altered", 2), bson.E{Key: "sum", Value: int64(4)})
	altered = slices.Delete(altered, 2, 3)
	addedTo := append(s.mended(t, "added to", 2), bson.E{Key: "byHand", Value: true})
	insert(t, s.ReadModel().Collection(Mended), addedTo, altered, s.mended(t, "behind", 1), s.mended(t, "right", 2), s.mended(t, "right-twin", 2))
	differ, err := s.Differing(t.Context(), Mended)
	if want := []string{"added to", "altered", "behind", "lost", "right-twin"}; err != nil || !slices.Equal(differ, want) {
		t.Errorf("differ: got %q and %v, want %q", differ, err, want)
	}
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Violation(WrongViews); got.Count < 5 {
		t.Errorf("got %v, want at least those five", got)
	}
}

// What was sent again is held against what the source says, and against what was asked for.
func TestJudge_FindsWhatWasSentAgainWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	again := func(version int64, id, group string, change func(*azservicebus.Message)) {
		s.sendChanged(t, "a", version, 1, func(m *azservicebus.Message) {
			of := *m.MessageID
			whole := of + "~" + id
			m.MessageID = &whole
			m.ApplicationProperties["cloudEvents_id"] = whole
			m.ApplicationProperties["cloudEvents_resend"], m.ApplicationProperties["cloudEvents_resendof"] = id, of
			if group != "" {
				m.ApplicationProperties["cloudEvents_resendgroup"] = group
			}
			change(m)
		})
	}
	asIs := func(*azservicebus.Message) {}
	for version := range int64(3) {
		s.write(t, "a", version+1)
	}
	s.MayResend("g")
	s.send(t, "a", 1, 1)
	s.send(t, "a", 2, 1)
	again(3, "early", "g", asIs)
	s.send(t, "a", 3, 1)
	again(2, "disordered", "g", asIs)
	again(1, "disordered", "g", asIs)
	again(1, "nobody's", "other", asIs)
	again(1, "changed", "g", func(m *azservicebus.Message) { m.Body = []byte(`{"n":{"$numberLong":"7"}}`) })
	all := func(validate.Event) bool { return true }
	s.Resent("disordered", "g", time.Now(), all)
	s.Selects("disordered", time.Now(), all)
	of := func(version int64) func(validate.Event) bool {
		return func(e validate.Event) bool { return e.Version == version }
	}
	s.Selects("changed", time.Now(), of(2))
	s.Selects("early", time.Now().Add(-time.Hour), of(1)) // what was written since goes along
	err := poll.Until(t.Context(), "what was sent to be seen", func(context.Context) (bool, string) {
		return s.Observer.Count() == 3 && s.Observer.CountResent() == 5, ""
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, begins := range map[string]string{
		ResentUnlike:     "a version 1",
		ResentEarly:      "a version 3 came by resend early",
		ResentOutOfOrder: "a version 1",
		ResentForNobody:  "a version 1 came by resend nobody's",
		NotResent:        "a version 3 was not sent by resend disordered",
		Unselected:       "a version 1 came by resend changed",
	} {
		want(t, v.Violation(name), begins)
	}
	if lost := v.Violation(LostBeforeTopic); lost.Count != 0 {
		t.Errorf("live: got %v, want nothing lost", lost)
	}
}
