package readmodeltest_test

import (
	"testing"

	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

func TestFake_TheFakeBehaves(t *testing.T) {
	t.Parallel()
	readmodeltest.Conformance(t, func(*testing.T) readmodeltest.ReadModel { return readmodeltest.NewFake() })
}
