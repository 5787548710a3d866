package rebuild

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// State is how far a rebuild is.
type State string

// The states of a record: see the package.
const (
	Settled   State = "settled"
	Filling   State = "filling"
	Following State = "following"
)

// Record says which versions a declared projection has. The zero Record is that of a
// projection that was never rebuilt.
type Record struct {
	// Projection is the name that all versions share, and Declared the version that
	// PROJECTIONS has of it.
	Projection string `bson:"projection"`
	Declared   int    `bson:"declared"`
	// View is that of the versions, which those of another projection of the same name do
	// not have; "" where an earlier release began the first rebuild.
	View string `bson:"view,omitempty"`
	// Current is the version that is written, Next the one that is filled; 0 for none.
	Current int `bson:"current"`
	Next    int `bson:"next"`
	// Highest is the highest number given out, and Given are all of them; none where an
	// earlier release began the last rebuild.
	Highest int   `bson:"highest"`
	Given   []int `bson:"given,omitempty"`
	State   State `bson:"state"`
	// Revision rises with each change that projectors work by, Turn with each change.
	Revision int64 `bson:"revision"`
	Turn     int64 `bson:"turn"`
	// Content is the hash of what the projection said when the rebuild began; "" where an
	// earlier release began it. Changed tells that a projector has started since with one
	// that says something else.
	Content string `bson:"content,omitempty"`
	Changed bool   `bson:"changed,omitempty"`
	// WentBack tells that a process has seen, while Next was filled, that the read database
	// was restored from before: what was resent may be gone again.
	WentBack bool `bson:"wentBack,omitempty"`
	// HeldUntil is until when, by the server's clock, a command has the record for itself.
	HeldUntil time.Time `bson:"heldUntil,omitempty"`
	// Held tells that it is whoever has this value.
	Held bool `bson:"-"`
	// Retired are versions that nobody writes any more, and whose documents are to be
	// dropped.
	Retired []int `bson:"retired"`
	// SwitchedAt is when readers were switched to Next; zero before.
	SwitchedAt time.Time `bson:"switchedAt,omitempty"`
	Who        string    `bson:"who"`
	Why        string    `bson:"why"`
	BeganAt    time.Time `bson:"beganAt"`
}

// Begin is the record with a next version to be filled, whose number is above every
// existing one. content is the hash of the projection that fills it.
func (r Record) Begin(v *projection.Version, highest int, content, who, why string, at time.Time) Record {
	if r.Current == 0 {
		r.Projection, r.Declared, r.View, r.Current = v.Projection, v.Number, v.View, v.Number
	}
	r.Given = r.taken()
	r.Highest = max(r.Highest, r.Current, highest) + 1
	r.Given = append(r.Given, r.Highest)
	r.Next, r.State, r.SwitchedAt = r.Highest, Filling, time.Time{}
	r.Content, r.Changed, r.WentBack = content, false, false
	r.Who, r.Why, r.BeganAt = who, why, at
	return r.changed()
}

// Follow is the record once the next version has had everything.
func (r Record) Follow() Record {
	r.State = Following
	return r.changed()
}

// Settle is the record with the next version as the current one.
func (r Record) Settle() Record {
	r.Retired = append(slices.Clone(r.Retired), r.Current)
	r.Current, r.Next, r.State = r.Next, 0, Settled
	return r.changed()
}

// Abandon is the record without the next version.
func (r Record) Abandon() Record {
	r.Retired = append(slices.Clone(r.Retired), r.Next)
	r.Next, r.State = 0, Settled
	return r.changed()
}

// Switch is the record once readers were switched to the next version.
func (r Record) Switch(at time.Time) Record {
	r.SwitchedAt = at
	return r.Noted()
}

// Drop is the record without a version that was to be dropped.
func (r Record) Drop(version int) Record {
	r.Retired = slices.DeleteFunc(slices.Clone(r.Retired), func(n int) bool { return n == version })
	return r.Noted()
}

// Accept is the record of a rebuild that goes on although the projection has changed, or the
// read database went back.
func (r Record) Accept(content string) Record {
	r.Content, r.Changed, r.WentBack = content, false, false
	return r.Noted()
}

// Noted is the record in its next turn, of which projectors need not know. Nobody holds
// it.
func (r Record) Noted() Record {
	r.Turn++
	r.HeldUntil, r.Held = time.Time{}, false
	return r
}

func (r Record) changed() Record {
	r.Revision++
	return r.Noted()
}

// Other tells whether a projection has changed since the rebuild began.
func (r *Record) Other(p projection.Projection) bool {
	return r.Content != "" && r.Content != projection.Content(p)
}

// Purpose is the reason with which everything is asked to be resent for the next version.
// No other rebuild has the same, whatever numbers its versions have: those come again once
// a read database is lost, and resends are noted in another.
func (r *Record) Purpose() string {
	purpose := fmt.Sprintf("rebuild of projection %s, begun at %s", r.Projection, r.BeganAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	if r.Why != "" {
		purpose += ": " + r.Why
	}
	return purpose
}

// Seen is the version that readers are to see while there is a next one.
func (r *Record) Seen() int {
	if r.Next != 0 && !r.SwitchedAt.IsZero() {
		return r.Next
	}
	return r.Current
}

// taken are the numbers given out. Of a record that has only the highest one it may be any
// up to that.
func (r *Record) taken() []int {
	if len(r.Given) > 0 {
		return slices.Clone(r.Given)
	}
	var all []int
	for n := r.Declared + 1; n <= r.Highest; n++ {
		all = append(all, n)
	}
	return all
}

// of tells whether the record is of a version that PROJECTIONS declares.
func (r *Record) of(v *projection.Version) bool {
	return r.under(v) && r.Declared == v.Number
}

// under tells whether the record is of any version of the same projection, and not of one
// that has only its name: a group may have that, with documents of its own.
func (r *Record) under(v *projection.Version) bool {
	return r.Projection == v.Projection && (r.View == "" || r.View == v.View)
}

// Records are those of a read database.
type Records []Record

// Of is the record of a declared version; the zero Record where there is none.
func (rs Records) Of(v *projection.Version) Record {
	for i := range rs {
		if rs[i].of(v) {
			return rs[i]
		}
	}
	return Record{}
}

// Under are the records of all versions of a version's projection, whichever are declared.
func (rs Records) Under(v *projection.Version) (under Records) {
	for i := range rs {
		if rs[i].under(v) {
			under = append(under, rs[i])
		}
	}
	return under
}

// Outdated are the records of rebuilds under way whose declared projection has changed
// since they began, where nobody has noted that yet.
func (rs Records) Outdated(declared projection.Projections) (outdated Records) {
	for _, p := range declared {
		v, is := projection.VersionOf(p)
		if !is {
			continue
		}
		r := rs.Of(&v)
		if r.Next != 0 && !r.Changed && r.Other(p) {
			outdated = append(outdated, r)
		}
	}
	return outdated
}

// ErrTaken means that PROJECTIONS declares a version whose number a rebuild has taken.
var ErrTaken = errors.New("the number of the version is taken by a rebuild")

// Versions are the projections of a process with these declared ones: each in all the
// versions that its record names, the current one first. The error is ErrTaken where a
// rebuild has the number of a declared version.
func (rs Records) Versions(declared projection.Projections) (projection.Projections, error) {
	var all projection.Projections
	for _, p := range declared {
		v, is := projection.VersionOf(p)
		again, may := p.(projection.Renumbered)
		if !is || !may {
			all = append(all, p)
			continue
		}
		for i := range rs {
			if r := &rs[i]; r.under(&v) && slices.Contains(r.taken(), v.Number) {
				return nil, fmt.Errorf("%w: projection %q of version %d was rebuilt up to version %d: declare version %d", ErrTaken, v.Projection, r.Declared, r.Highest, r.Highest+1)
			}
		}
		r := rs.Of(&v)
		if r.Current == 0 {
			all = append(all, p)
			continue
		}
		all = append(all, again.Renumbered(r.Current))
		if r.Next != 0 {
			all = append(all, again.Renumbered(r.Next))
		}
	}
	return all, nil
}

// Current are the projections of a process with these declared ones, without the versions
// that are being filled. Versions must not return an error for the records.
func (rs Records) Current(declared projection.Projections) projection.Projections {
	settled := slices.Clone(rs)
	for i := range settled {
		settled[i].Next = 0
	}
	current, err := settled.Versions(declared)
	if err != nil {
		return declared
	}
	return current
}

// Follower is the number of the version that follows a current one, and has all that it
// has; 0 for none.
func (rs Records) Follower(current *projection.Version) int {
	for _, r := range rs.Under(current) {
		if r.Current == current.Number && r.State == Following {
			return r.Next
		}
	}
	return 0
}

// Filled are the versions that are filled, of what a process is declared.
func (rs Records) Filled(declared projection.Projections) (filled projection.Projections) {
	for _, p := range declared {
		v, is := projection.VersionOf(p)
		again, may := p.(projection.Renumbered)
		if r := rs.Of(&v); is && may && r.Next != 0 && r.State == Filling {
			filled = append(filled, again.Renumbered(r.Next))
		}
	}
	return filled
}

// Signature names the revisions by which a process with these declared projections works.
func (rs Records) Signature(declared projection.Projections) string {
	var of []string
	for _, p := range declared {
		if v, is := projection.VersionOf(p); is {
			if r := rs.Of(&v); r.Revision > 0 {
				of = append(of, fmt.Sprintf("%s:%d", v.Account(), r.Revision))
			}
		}
	}
	slices.Sort(of)
	return strings.Join(of, " ")
}

// Unnumbered are parts of a deployment without what rebuilds have decided: the versions of
// a projection that was ever rebuilt count as one, whatever their numbers.
func (rs Records) Unnumbered(parts []projection.Part) []projection.Part {
	parts = slices.Clone(parts)
	for i := range parts {
		for j := range rs {
			if n, is := strings.CutPrefix(parts[i].Name, rs[j].Projection+"_v"); is && strings.Trim(n, "0123456789") == "" {
				parts[i].Name, parts[i].Collections = rs[j].Projection, nil
			}
		}
	}
	return parts
}

// Decider are the projections of a process with these declared ones, where an event that was
// followed by a version which a rebuild has ended is followed by the one that is written.
func (rs Records) Decider(projections, declared projection.Projections) delivery.Decider {
	d := decider{projections, map[string][]string{}}
	for _, p := range declared {
		v, is := projection.VersionOf(p)
		if !is {
			continue
		}
		r := rs.Of(&v)
		for _, n := range append(r.taken(), r.Declared) {
			if current := v.Other(r.Current).Account(); n != r.Current && n != r.Next {
				d.ended[current] = append(d.ended[current], v.Other(n).Account())
			}
		}
	}
	return d
}

// decider implements delivery.Decider.
type decider struct {
	projection.Projections
	// ended are the names of versions that nobody writes any more, by that of the one that
	// is written.
	ended map[string][]string
}

// Followers implements delivery.Decider.
func (d decider) Followers(eventType string) []string {
	followers := d.Projections.Followers(eventType)
	for _, name := range followers {
		followers = append(followers, d.ended[name]...)
	}
	return followers
}

// Address is the group for which a resend is made that fills a version of a group's
// projection. No group of projectors has such a name.
func Address(group string, v *projection.Version) string { return group + "/" + v.Collection() }
