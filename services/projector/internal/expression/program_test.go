package expression

import (
	"strings"
	"testing"

	"github.com/expr-lang/expr/ast"
)

// An operator without operands cannot be compiled; evaluating one is a fault.
func TestProgram_AFaultIsAnError(t *testing.T) {
	t.Parallel()
	p := &Program{root: &ast.BinaryNode{Operator: "+"}}
	if _, err := p.Run(t.Context(), Input{}); err == nil || !strings.Contains(err.Error(), "fault of the projector") {
		t.Errorf("Run = %v, want the fault as an error", err)
	}
}
