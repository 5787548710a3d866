package witness

import (
	"hash/crc32"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/ingo"
)

// step is a document of the projection in Go to which versions of its order were applied.
func (s *stage) step(t *testing.T, order, part string, versions ...int64) bson.D {
	t.Helper()
	latest, sum, ids := versions[len(versions)-1], int64(0), int64(0)
	for _, v := range versions {
		sum, ids = sum+v, ids+int64(crc32.ChecksumIEEE([]byte(s.messageID(t, order, v))))
	}
	e := event(order, latest)
	return bson.D{
		{Key: "_id", Value: order + "/" + part},
		{Key: "events", Value: int64(len(versions))},
		{Key: "sum", Value: sum},
		{Key: "ids", Value: ids},
		{Key: "latest", Value: latest},
		{Key: "_relay", Value: bson.D{
			{Key: "eventId", Value: s.messageID(t, order, latest)},
			{Key: "eventType", Value: e.Type},
			{Key: "eventTime", Value: e.Time},
			{Key: "sequence", Value: "000000000000000000" + string(rune('0'+latest))},
			{Key: "aggregateVersion", Value: latest},
		}},
	}
}

// The documents of the projection in Go are judged one by one, with the events that they
// name.
func TestJudge_FindsWhatAProjectionInGoHasWrong(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Latest.WithSteps())
	for version := range int64(4) {
		s.write(t, "o", version+1)
	}
	marked := s.step(t, "o", "0", 3)
	marked[5].Value = append(marked[5].Value.(bson.D), bson.E{Key: "halted", Value: bson.D{}})
	behind := s.step(t, "o", "T", 1, 2, 4, 3)
	behind[4].Value = int64(4)
	insert(t, s.ReadModel().Collection(ingo.Collection), marked, behind, s.step(t, "o", "1", 4), s.step(t, "x", "T", 1))
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := v.Violation(WrongSteps)
	got.Samples = got.Samples[:3]
	got.Count -= 3
	want(t, got, "o/1: events is 1 (want 2), ids is ", "o/2 is missing", "x/T should not be there")
	if all := v.Violation(WrongSteps); all.Count != 6 {
		t.Errorf("got %d %q, want also one at another event, one of nobody, and one that is marked", all.Count, all.Samples)
	}
}
