package projection

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Load reads the projections declared in a file. It reports everything that is
// wrong at once, each problem with file, line, projection and event type.
func Load(path string) (Projections, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read projections: %w", err)
	}
	return Parse(path, content)
}

// LoadAll reads the projections declared in several files. As within one file, no two may
// share a name or a collection.
func LoadAll(paths []string) (Projections, error) {
	var all Projections
	var errs []error
	for _, path := range paths {
		loaded, err := Load(path)
		all, errs = append(all, loaded...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := all.Check(); err != nil {
		return nil, err
	}
	return all, nil
}

// Parse is Load for a file's content; name is what problems call the file.
func Parse(name string, content []byte) (Projections, error) {
	root, err := parseYAML(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l := &loader{file: name}
	projections := l.document(root)
	if len(l.problems) > 0 {
		return nil, errors.Join(l.problems...)
	}
	if err := projections.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return projections, nil
}

// parseYAML returns the body of the one document in the content.
func parseYAML(content []byte) (ast.Node, error) {
	tree, err := parser.ParseBytes(content, 0)
	if err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, fmt.Errorf("has %d YAML documents, not one with projections", len(tree.Docs))
	}
	return tree.Docs[0].Body, nil
}

// loader walks the tree, keeps where it is, and gathers problems.
type loader struct {
	file       string
	projection string
	eventType  string
	keyed      bool // the projection has a key
	item       bool // expressions see an element of a forEach
	iterates   bool // an event type of the projection has a forEach
	problems   []error
}

// problem notes what is wrong at a node.
func (l *loader) problem(at ast.Node, format string, args ...any) {
	var where strings.Builder
	where.WriteString(l.file)
	if at != nil && at.GetToken() != nil && at.GetToken().Position != nil {
		fmt.Fprintf(&where, ":%d", at.GetToken().Position.Line)
	}
	where.WriteString(": ")
	if l.projection != "" {
		fmt.Fprintf(&where, "projection %q: ", l.projection)
	}
	if l.eventType != "" {
		fmt.Fprintf(&where, "event type %q: ", l.eventType)
	}
	l.problems = append(l.problems, fmt.Errorf("%s%s", where.String(), fmt.Sprintf(format, args...)))
}

func (l *loader) document(root ast.Node) Projections {
	var projections Projections
	for _, e := range l.entries(root, "the file") {
		if e.key != "projections" {
			l.problem(e.at, "unknown key %q; there is only projections", e.key)
			continue
		}
		list, ok := e.value.(*ast.SequenceNode)
		if !ok {
			l.problem(e.at, "projections is not a list")
			continue
		}
		for _, node := range list.Values {
			projections = append(projections, l.projectionAt(node))
		}
	}
	if len(projections) == 0 && len(l.problems) == 0 {
		l.problem(root, "declares no projection")
	}
	return projections
}

// keySource is a key as the file has it, without what does not count: comments, quotes and
// space around it.
func keySource(node ast.Node) string {
	if source, is := expressionText(node); is {
		return strings.TrimSpace(source)
	}
	return node.GetToken().Value
}

func (l *loader) projectionAt(node ast.Node) *declared {
	p := &declared{rules: map[string]*rule{}, source: sourceOf(node)}
	l.projection, l.keyed, l.iterates = "", false, false
	entries := l.entries(node, "a projection")
	for _, e := range entries {
		switch e.key {
		case "name":
			p.name = l.text(e)
			l.projection = p.name
		case "key":
			l.keyed = true
		}
	}
	var keyAt ast.Node
	for _, e := range entries {
		switch e.key {
		case "name":
		case "collection":
			p.collection = l.text(e)
		case "key":
			l.item = true
			p.key, p.keyed, p.keys, keyAt = l.value("key", e), true, keySource(e.value), e.at
		case "version":
			p.version = l.version(e)
		case "on":
			l.rules(p, e)
		case "onError":
			p.onError = l.onError(e)
		default:
			l.problem(e.at, "unknown key %q; a projection has name, collection, version, key, on and onError", e.key)
		}
	}
	if p.key.program != nil && p.key.program.UsesItem() && !l.iterates {
		l.problem(keyAt, "key: item is an element of a forEach, and no event type has one")
	}
	if p.name == "" {
		l.problem(node, "a projection without a name")
	}
	if problem := badCollection(p.collection); problem != "" {
		l.problem(node, "collection %q %s", p.collection, problem)
	}
	if len(p.rules) == 0 {
		l.problem(node, "follows no event type; on names them")
	}
	l.projection = ""
	return p
}

// sourceOf is what a node says of a projection, without its policy: another policy is no
// other projection.
func sourceOf(node ast.Node) string {
	mapping, is := node.(*ast.MappingNode)
	if !is {
		return node.String()
	}
	others := *mapping
	others.Values = slices.DeleteFunc(slices.Clone(mapping.Values), func(pair *ast.MappingValueNode) bool { return keyText(pair.Key) == "onError" })
	return others.String()
}

// onError reads what becomes of events that fail: an action, or one for each class.
func (l *loader) onError(e entry) Policy {
	p := Policy{}
	if text, is := expressionText(e.value); is {
		if err := p.set("", text); err != nil {
			l.problem(e.at, "onError: %s", err)
		}
		return p
	}
	for _, of := range l.entries(e.value, "onError") {
		if err := p.set(of.key, l.text(of)); err != nil || of.key == "" {
			l.problem(of.at, "onError: %v; it has %s, each with one of %s", cmp.Or(err, errNoClass), listed(classes), listed(actions))
		}
	}
	return p
}

var errNoClass = errors.New("a class is empty")

// version reads the number of a version.
func (l *loader) version(e entry) int {
	if node, ok := e.value.(*ast.IntegerNode); ok {
		if n, ok := integer(node); ok && n >= 1 && n <= maxVersion {
			return n
		}
	}
	l.problem(e.at, "version is not a whole number from 1 to %d", maxVersion)
	return 0
}

func (l *loader) rules(p *declared, on entry) {
	for _, e := range l.entries(on.value, "on") {
		l.eventType = e.key
		if e.key == "" {
			l.problem(e.at, "an event type is empty")
		}
		if p.rules[e.key] != nil {
			l.problem(e.at, "is there twice")
		}
		p.rules[e.key] = l.rule(e)
		l.eventType = ""
	}
}
