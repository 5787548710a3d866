// Package promql reads queries and says whether they keep deployments apart.
//
// One Prometheus watches many deployments, told apart by the labels namespace
// and job. A query that loses one of the two on its way lets a deployment that
// is well answer for one that is not.
package promql

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// scope are the labels that tell deployments apart.
var scope = []string{"namespace", "job"}

// KeepsApart returns an error that names the part of a query in which
// deployments are mixed, or one can hide another. What only selects one
// deployment, as Pinned has it, may do with it as it likes.
//
// A function that says whether anything is there at all, such as absent, knows
// no deployments. It may stand beside a query that does, joined to it by or:
// there it adds an answer and takes none away.
func KeepsApart(query string) error {
	expr, err := parse(query)
	if err != nil {
		return err
	}
	beside := additions(expr)
	var found []error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if why := mixes(node); why != "" && !pinned(node) && !slices.Contains(beside, node) {
			found = append(found, fmt.Errorf("%s: %s", node, why))
		}
		return nil
	})
	return errors.Join(found...)
}

// Pinned returns an error that names the selectors of a query that do not name
// one namespace and one job.
func Pinned(query string) error {
	expr, err := parse(query)
	if err != nil {
		return err
	}
	var found []error
	selectors(expr, func(s *parser.VectorSelector) {
		if !names(s) {
			found = append(found, fmt.Errorf("%s does not name one namespace and one job", s))
		}
	})
	return errors.Join(found...)
}

func parse(query string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(query)
}

// mixes returns why deployments are mixed at a node, or nothing.
func mixes(node parser.Node) string {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		if lost(n.Without, n.Grouping) {
			return "aggregates without namespace and job"
		}
	case *parser.BinaryExpr:
		if m := n.VectorMatching; m != nil && lost(!m.On, m.MatchingLabels) {
			return "joins without namespace and job"
		}
	case *parser.Call:
		return drops(n)
	}
	return ""
}

// lost says whether a label of the scope is gone: it is in a list of those that
// are left out, or it is not in a list of those that stay.
func lost(leftOut bool, list []string) bool {
	return slices.ContainsFunc(scope, func(label string) bool { return slices.Contains(list, label) == leftOut })
}

// drops returns why a function loses the scope, or nothing.
func drops(call *parser.Call) string {
	switch call.Func.Name {
	case "absent", "absent_over_time", "scalar":
		return "drops namespace and job"
	case "label_replace", "label_join":
		if to, is := call.Args[1].(*parser.StringLiteral); !is || slices.Contains(scope, to.Val) {
			return "writes over namespace or job"
		}
	}
	return ""
}

// additions returns what only says whether anything is there, of the
// alternatives of a query that has others.
func additions(expr parser.Expr) []parser.Node {
	var absences []parser.Node
	all := alternatives(expr)
	for _, one := range all {
		if call, is := one.(*parser.Call); is && (call.Func.Name == "absent" || call.Func.Name == "absent_over_time") {
			absences = append(absences, call)
		}
	}
	if len(absences) == len(all) {
		return nil
	}
	return absences
}

// alternatives returns what a query joins by or.
func alternatives(expr parser.Expr) []parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return alternatives(e.Expr)
	case *parser.BinaryExpr:
		if e.Op == parser.LOR {
			return append(alternatives(e.LHS), alternatives(e.RHS)...)
		}
	}
	return []parser.Expr{expr}
}

// pinned says whether all that a node selects is of one deployment.
func pinned(node parser.Node) bool {
	all := true
	selectors(node, func(s *parser.VectorSelector) { all = all && names(s) })
	return all
}

func selectors(node parser.Node, each func(*parser.VectorSelector)) {
	parser.Inspect(node, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			each(s)
		}
		return nil
	})
}

// names says whether a selector names one namespace and one job.
func names(s *parser.VectorSelector) bool {
	return !slices.ContainsFunc(scope, func(label string) bool {
		return !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
			return m.Name == label && m.Type == labels.MatchEqual && m.Value != ""
		})
	})
}
