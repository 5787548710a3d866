package guard

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Switch is the variable of the environment that says which guard of a program that was
// built of the sources of Together is cut, by its index.
const Switch = "MUTATION_CUT"

// switchName is the variable in each package that holds it.
const switchName = "mutationSwitch"

// copyName stands in the name of each copy, before its index.
const copyName = "MutationCut"

// Together writes into dir sources in which every guard stands, and Switch cuts one, so
// that a program is built once for all of them. It returns the overlay that tells the
// compiler of these, and which guards can be cut so: those that stand in one function,
// of which there is a copy without the guard. Others, and those in alone, have to be cut
// by themselves.
func Together(root, dir string, guards []Guard, alone map[int]bool) (overlay string, switched []bool, err error) {
	inFile := make(map[string][]int)
	for i, g := range guards {
		if !alone[i] {
			inFile[g.File] = append(inFile[g.File], i)
		}
	}
	switched = make([]bool, len(guards))
	replace := make(map[string]string)
	for n, file := range slices.Sorted(maps.Keys(inFile)) {
		path := filepath.Join(root, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		s, err := parse(string(source))
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, i := range inFile[file] {
			switched[i] = s.without(guards[i], strconv.Itoa(i))
		}
		instead := filepath.Join(dir, fmt.Sprintf("file%d.go", n))
		variable := filepath.Join(dir, fmt.Sprintf("switch%d.go", n))
		replace[path], replace[filepath.Join(filepath.Dir(path), "mutation_switch.go")] = instead, variable
		declared := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", s.file.Name.Name, switchName, Switch)
		for path, text := range map[string]string{instead: s.String(), variable: declared} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return "", nil, err
			}
		}
	}
	overlay = filepath.Join(dir, "together.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	return overlay, switched, os.WriteFile(overlay, list, 0o600)
}

// place is where the compiler finds something wrong in a source of Together.
var place = regexp.MustCompile(`(?m)(file\d+\.go):(\d+):`)

// copied names a copy of a function.
var copied = regexp.MustCompile(`(?m)^func .*` + copyName + `(\d+)[(\[]`)

// Blame returns the guards without which the sources in dir do not compile, by what the
// compiler has to say.
func Blame(dir, says string) ([]int, error) {
	var guards []int
	for _, p := range place.FindAllStringSubmatch(says, -1) {
		source, err := os.ReadFile(filepath.Join(dir, p[1]))
		if err != nil {
			return nil, err
		}
		line, err := strconv.Atoi(p[2])
		if err != nil {
			return nil, err
		}
		lines := strings.SplitAfter(string(source), "\n")
		before := copied.FindAllStringSubmatch(strings.Join(lines[:min(line, len(lines))], ""), -1)
		if len(before) == 0 {
			continue
		}
		i, err := strconv.Atoi(before[len(before)-1][1])
		if err != nil {
			return nil, err
		}
		guards = append(guards, i)
	}
	return guards, nil
}

// edit puts text in place of so many bytes of a source.
type edit struct {
	at, length int
	text       string
}

// source is one that is being given switches.
type source struct {
	text   string
	file   *ast.File
	edits  []edit
	called map[*ast.FuncDecl]string
	copies strings.Builder
}

func parse(text string) (*source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	return &source{text: text, file: file, called: make(map[*ast.FuncDecl]string)}, err
}

// offset is where a node of the file, the only one of its set, begins or ends.
func offset(p token.Pos) int { return int(p) - 1 }

// without adds a copy of the function around the guard in which that is cut, and has the
// function call it when the switch says so; false where there is no such function.
func (s *source) without(g Guard, index string) bool {
	if strings.Count(s.text, g.Cut) != 1 {
		return false
	}
	at := strings.Index(s.text, g.Cut)
	decl := s.around(at, at+len(g.Cut))
	if decl == nil {
		return false
	}
	arguments, known := s.called[decl]
	if !known {
		arguments = s.named(decl)
		s.called[decl] = arguments
	}
	name := decl.Name.Name + copyName + index
	fmt.Fprintf(&s.copies, "\n%s%s%s%s%s\n", s.text[offset(decl.Pos()):offset(decl.Name.Pos())], name,
		s.text[offset(decl.Name.End()):at], g.With, s.text[at+len(g.Cut):offset(decl.End())])
	call := strings.Replace(arguments, decl.Name.Name, name, 1)
	if decl.Type.Results != nil {
		call = "return " + call
	} else {
		call += "; return"
	}
	s.edits = append(s.edits, edit{offset(decl.Body.Lbrace) + 1, 0, fmt.Sprintf(" if %s == %q { %s };", switchName, index, call)})
	return true
}

// around is the function whose body has what is between these two places. A function
// that asks who has called it cannot be called by another in its place.
func (s *source) around(from, to int) *ast.FuncDecl {
	for _, d := range s.file.Decls {
		decl, is := d.(*ast.FuncDecl)
		if !is || decl.Body == nil || offset(decl.Body.Lbrace) >= from || offset(decl.Body.Rbrace) < to {
			continue
		}
		body := s.text[offset(decl.Body.Lbrace):offset(decl.Body.Rbrace)]
		if strings.Contains(body, "recover()") || strings.Contains(body, "runtime.Caller") {
			return nil
		}
		return decl
	}
	return nil
}

// named gives every parameter a name, and returns a call with the same arguments.
func (s *source) named(decl *ast.FuncDecl) string {
	call := decl.Name.Name
	if decl.Recv != nil {
		call = s.names(decl.Recv.List, "mutationReceiver")[0] + "." + call
	}
	if decl.Type.TypeParams != nil {
		call += "[" + strings.Join(s.names(decl.Type.TypeParams.List, "mutationType"), ", ") + "]"
	}
	return call + "(" + strings.Join(s.names(decl.Type.Params.List, "mutationParameter"), ", ") + ")"
}

func (s *source) names(fields []*ast.Field, prefix string) []string {
	var names []string
	for _, f := range fields {
		dots := ""
		if _, is := f.Type.(*ast.Ellipsis); is {
			dots = "..."
		}
		if f.Names == nil {
			name := prefix + strconv.Itoa(len(names))
			s.edits = append(s.edits, edit{offset(f.Type.Pos()), 0, name + " "})
			names = append(names, name+dots)
		}
		for _, ident := range f.Names {
			name := ident.Name
			if name == "_" {
				name = prefix + strconv.Itoa(len(names))
				s.edits = append(s.edits, edit{offset(ident.Pos()), len("_"), name})
			}
			names = append(names, name+dots)
		}
	}
	return names
}

// String is the source with its switches, and the copies behind it.
func (s *source) String() string {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return a.at - b.at })
	var b strings.Builder
	done := 0
	for _, e := range s.edits {
		b.WriteString(s.text[done:e.at] + e.text)
		done = e.at + e.length
	}
	return b.String() + s.text[done:] + s.copies.String()
}
