package backfill

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestJudge_KnowsThePlansOfServers has plans in the shape that servers of several
// versions and kinds give them. A server reads through an index as it is told to,
// also where it lacks documents.
func TestJudge_KnowsThePlansOfServers(t *testing.T) {
	t.Parallel()
	const scan = `{"stage": "IXSCAN", "indexName": "i", "isMultiKey": false, "isUnique": true, "isSparse": false, "isPartial": false}`
	for name, tt := range map[string]struct {
		plan   string
		unique bool
		want   bool
	}{
		"an index":           {plan: `{"stage": "FETCH", "inputStage": ` + scan + `}`, unique: true, want: true},
		"not unique":         {plan: `{"stage": "FETCH", "inputStage": {"stage": "IXSCAN", "indexName": "i", "isUnique": false}}`, unique: true},
		"multikey":           {plan: `{"stage": "FETCH", "inputStage": {"stage": "IXSCAN", "indexName": "i", "isMultiKey": true}}`},
		"sparse":             {plan: `{"stage": "FETCH", "inputStage": {"stage": "IXSCAN", "indexName": "i", "isSparse": true}}`},
		"partial":            {plan: `{"stage": "FETCH", "inputStage": {"stage": "IXSCAN", "indexName": "i", "isPartial": true}}`},
		"with a collation":   {plan: `{"stage": "FETCH", "inputStage": {"stage": "IXSCAN", "indexName": "i", "collation": {"locale": "en"}}}`},
		"sorted afterwards":  {plan: `{"stage": "SORT", "inputStage": {"stage": "FETCH", "inputStage": ` + scan + `}}`},
		"a collection scan":  {plan: `{"stage": "SORT", "inputStage": {"stage": "COLLSCAN"}}`},
		"nothing to read":    {plan: `{"stage": "EOF"}`, unique: true, want: true},
		"slot based":         {plan: `{"queryPlan": {"stage": "FETCH", "inputStage": ` + scan + `}, "slotBasedPlan": {"stages": "[1] sort"}}`, want: true},
		"a clustered one":    {plan: `{"stage": "CLUSTERED_IXSCAN"}`},
		"on all shards":      {plan: `{"stage": "SHARD_MERGE_SORT", "shards": [{"winningPlan": {"stage": "FETCH", "inputStage": ` + scan + `}, "rejectedPlans": [{"stage": "SORT"}]}]}`, want: true},
		"not on every shard": {plan: `{"stage": "SHARD_MERGE_SORT", "shards": [{"winningPlan": ` + scan + `}, {"winningPlan": {"stage": "SORT", "inputStage": {"stage": "COLLSCAN"}}}]}`},
	} {
		var plan bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(tt.plan), true, &plan); err != nil {
			t.Fatal(err)
		}
		var stages []bson.Raw
		stagesOf(plan, &stages)
		if index, got := judge(stages, tt.unique); got != tt.want {
			t.Errorf("%s: serves = %v by %q, want %v", name, got, index, tt.want)
		}
	}
}
