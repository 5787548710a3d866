package doctor_test

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/projector/internal/doctor"
)

func TestDatabase_AShardKeyOtherThanTheIDIsAFault(t *testing.T) {
	t.Parallel()
	found := doctor.JudgeDatabase(&doctor.Database{Name: "shop", ShardKeys: map[string]string{"orders": `{"customer": 1}`}}, doctor.Settings{TombstoneTTL: time.Hour})
	if len(found) != 1 || found[0].Severity != doctor.Fault || !strings.Contains(found[0].Problem, `"orders" sharded by`) {
		t.Errorf("got %+v, want one fault that names the collection", found)
	}
}
