package app_test

import (
	"strings"
	"testing"

	"changerelay/services/projector/internal/projection"
)

// Under ON_GAP=report nothing that comes tells that the read database was restored alone.
func TestProjector_FindsTheReadDatabaseRestoredFromBefore(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "goneback", database), parse(t))
	until(t, "it runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	lose(t, client.Database(database), projection.Processes) // as a backup of before its start has it
	until(t, "it is found", func() bool { return p.Status().WentBack == 1 })
	if !strings.Contains(scraped(t, p), "projector_read_database_went_back_total 1\n") {
		t.Error("the metrics do not say so")
	}
	if !strings.Contains(p.logs.String(), "The read database restored alone") {
		t.Error("the log does not name the way back")
	}
}
