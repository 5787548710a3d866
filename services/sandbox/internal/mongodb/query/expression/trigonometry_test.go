package expression_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func TestTrigonometry_ComputesAndRefuses(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$sin":0}`:                `0.0D`,
		`{"$cos":0}`:                `1.0D`,
		`{"$atan2":[0,1]}`:          `0.0D`,
		`{"$degreesToRadians":180}`: `3.141592653589793D`,
		`{"$tan":null}`:             `null`,
		`{"$lt":[{"$rand":{}},1]}`:  `true`,
	})
	checkErrors(t, map[string]mongoerr.Code{
		`{"$acos":2}`:  50989,
		`{"$sin":"x"}`: 28765,
		`{"$rand":1}`:  3040501,
	})
}
