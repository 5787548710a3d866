package mongoerr_test

import (
	"errors"
	"fmt"
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func TestError_CodesHaveTheServersNames(t *testing.T) {
	t.Parallel()
	for code, want := range map[mongoerr.Code]string{
		2: "BadValue", 9: "FailedToParse", 14: "TypeMismatch", 26: "NamespaceNotFound", 28: "PathNotViable",
		40: "ConflictingUpdateOperators", 43: "CursorNotFound", 53: "InvalidIdField", 59: "CommandNotFound", 66: "ImmutableField",
		112: "WriteConflict", 186: "ClientMetadataCannotBeMutated", 251: "NoSuchTransaction", 266: "FailPointSetFailed",
		280: "ChangeStreamFatalError", 286: "ChangeStreamHistoryLost", 11000: "DuplicateKey",
		40324: "Location40324", 17276: "Location17276",
	} {
		if got := mongoerr.New(code, "x").Name(); got != want {
			t.Errorf("%d: got %s, want %s", code, got, want)
		}
	}
}

func TestError_ErrorsAreFoundInAChain(t *testing.T) {
	t.Parallel()
	e := mongoerr.New(mongoerr.BadValue, "value %d", 7)
	wrapped := fmt.Errorf("update orders: %w", e)
	if got := mongoerr.From(wrapped); got != e {
		t.Errorf("From: got %v, want %v", got, e)
	}
	if !mongoerr.Is(wrapped, mongoerr.BadValue) || mongoerr.Is(wrapped, mongoerr.TypeMismatch) || mongoerr.Is(nil, mongoerr.BadValue) {
		t.Error("Is does not go by the code in the chain")
	}
	if got := mongoerr.From(errors.New("disk")); got.Code != mongoerr.InternalError || got.Message != "disk" {
		t.Errorf("From of another error: got %v", got)
	}
	if got := mongoerr.From(nil); got != nil {
		t.Errorf("From of nil: got %v", got)
	}
	if got, want := e.Error(), "BadValue: value 7"; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
}

func TestError_AdditionsLeaveTheErrorAsItWas(t *testing.T) {
	t.Parallel()
	e := mongoerr.New(mongoerr.WriteConflict, "conflict").WithLabels("TransientTransactionError")
	more := e.WithLabels("Other").WithExtra("keyValue", 1).Prefixed("plan %d", 2)
	if len(e.Labels) != 1 || len(e.Extra) != 0 || e.Message != "conflict" {
		t.Errorf("the original changed: %+v", e)
	}
	if len(more.Labels) != 2 || more.Extra[0].Key != "keyValue" || more.Message != "plan 2 :: caused by :: conflict" || more.Code != e.Code {
		t.Errorf("got %+v", more)
	}
}
