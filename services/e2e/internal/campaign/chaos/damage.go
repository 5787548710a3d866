package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// What is done to documents by hand.
const (
	altered = "altered"
	removed = "removed"
	doubled = "doubled"

	twinSuffix = "-twin" // at the end of the id of a doubled document
)

// single are the views whose documents are single aggregates', which are compared and
// mended one by one.
var single = []string{witness.Mended, witness.Placed}

// damage alters, removes and doubles documents that readers see.
func damage(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	view := single[rng.IntN(len(single))]
	live, err := c.witness.LiveVersion(ctx, view)
	if err != nil || live == "" {
		return "", nil, errNobody
	}
	documents := c.witness.ReadModel().Collection(live)
	var done []string
	for _, id := range c.witness.Ledger.Some(rng, 3) {
		how := []string{altered, removed, doubled}[rng.IntN(3)]
		if is, err := c.damageOne(ctx, documents, document{view, id}, how); err != nil {
			c.say("%s is not %s: %v", id, how, err)
		} else if is {
			done = append(done, id+" "+how)
		}
	}
	if len(done) == 0 {
		return "", nil, errNobody
	}
	return fmt.Sprintf("damage to %s: %s", live, strings.Join(done, ", ")), nil, nil
}

// damageOne does something to a document; false where there is none, or something was
// done to it before.
func (c *campaign) damageOne(ctx context.Context, in *mongodriver.Collection, d document, how string) (bool, error) {
	shown := bson.D{{Key: "_id", Value: d.id}, {Key: "_relay.deletedAt", Value: nil}}
	var whole bson.D
	if err := in.FindOne(ctx, shown).Decode(&whole); errors.Is(err, mongodriver.ErrNoDocuments) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	victim := d
	if how == doubled {
		victim.id += twinSuffix
	}
	c.repairs.mu.Lock()
	before := c.repairs.touched[victim]
	// Readers are told before it is done, and whoever compares too, however it comes out.
	c.repairs.touched[victim] = true
	c.repairs.mu.Unlock()
	if before {
		return false, nil
	}
	var err error
	switch how {
	case altered:
		_, err = in.UpdateOne(ctx, shown, bson.D{{Key: "$set", Value: bson.D{{Key: "byHand", Value: true}}}})
	case removed:
		_, err = in.DeleteOne(ctx, shown)
	case doubled:
		for i := range whole {
			if whole[i].Key == "_id" {
				whole[i].Value = victim.id
			}
		}
		_, err = in.InsertOne(ctx, whole)
	}
	c.repairs.mu.Lock()
	defer c.repairs.mu.Unlock()
	c.repairs.damaged[victim] = how
	return err == nil, err
}

// verified is what projector verify has printed.
type verified struct {
	ended    bool // it came to its end
	differ   map[document]string
	commands []string
}

func verifiedIn(output string) verified {
	v := verified{differ: make(map[document]string)}
	for line := range strings.Lines(output) {
		var said struct {
			Verified   *bool    `json:"verified"`
			Projection string   `json:"projection"`
			Aggregate  string   `json:"aggregate"`
			Difference string   `json:"difference"`
			Commands   []string `json:"commands"`
		}
		if json.Unmarshal([]byte(line), &said) != nil {
			continue
		}
		if said.Difference != "" {
			v.differ[document{said.Projection, said.Aggregate}] = said.Difference
		}
		if said.Verified != nil {
			v.ended, v.commands = true, said.Commands
		}
	}
	return v
}

// ids are the documents of a view that differ, in their order.
func (v *verified) ids(view string) []string {
	var ids []string
	for d := range v.differ {
		if d.view == view {
			ids = append(ids, d.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// verify compares read models with the source: all, or those of some aggregates.
func (c *campaign) verify(ctx context.Context, n *cluster.Node, wait string, aggregates ...string) (verified, string, error) {
	args := []string{"verify", "--publisher", c.repairs.publisher, "--rate", "0", "--wait", wait}
	for _, view := range single {
		args = append(args, "--projection", view)
	}
	for _, id := range aggregates {
		args = append(args, "--aggregate", id)
	}
	output, err := n.CommandIn(ctx, nil, args...)
	v := verifiedIn(output)
	for _, view := range single {
		if command := c.twins(&v, view); command != "" {
			v.commands = append(v.commands, command)
		}
	}
	return v, output, err
}

// twins is the command by which an operator removes doubled documents of a view. None is
// offered for them: the source has nothing of such an aggregate, so the document may be all
// there is.
func (c *campaign) twins(v *verified, view string) string {
	ids := slices.DeleteFunc(v.ids(view), func(id string) bool { return !strings.HasSuffix(id, twinSuffix) })
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("projector rebuild --projection %s --force --aggregate %s --why 'doubled by hand' --publisher '%s'",
		view, strings.Join(ids, " --aggregate "), c.repairs.publisher)
}

// verifyAndMend compares documents with the source, beside faults and load, those that were
// damaged among others, and has what differs built anew. A comparison that comes to its end
// names those that are damaged, and no others but what is merely on its way.
func verifyAndMend(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take("comparison")
	if !free {
		return "", nil, errNobody
	}
	defer release()
	n := c.cluster.Projectors[rng.IntN(c.cfg.Projectors)]
	lasting := c.repairs.sorted(witness.Mended, true)
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	aggregates := slices.Concat(c.repairs.sorted(witness.Mended, false), c.repairs.sorted(witness.Placed, false), c.witness.Ledger.Some(rng, comparedBeside))
	if len(aggregates) == 0 {
		return "", nil, errNobody
	}
	slices.Sort(aggregates)
	v, output, err := c.verify(ctx, n, "5s", slices.Compact(aggregates)...)
	if !v.ended {
		return "verify: " + outcomeOf(output, err), nil, nil
	}
	for d, how := range v.differ {
		// Of what is on its way for longer than that, a first event has left no document. It
		// must come by itself.
		if waits := how == "behind" || how == "lost"; !c.repairs.named(d) && !waits {
			c.wrong("verify names %s of %s, which nobody has damaged, as %s", d.id, d.view, how)
		}
	}
	for _, id := range c.repairs.stillDamaged(witness.Mended, lasting) {
		if v.differ[document{witness.Mended, id}] == "" {
			c.wrong("verify does not name %s of %s, which is damaged", id, witness.Mended)
		}
	}
	what := fmt.Sprintf("verify: %d differ", len(v.differ))
	if rng.IntN(2) == 0 {
		what += c.killBeside(ctx, killedProjector, projectorAt(rng.IntN(c.cfg.Projectors)))
	}
	return what + c.mend(ctx, n, v, c.repairs.isTouched), nil, nil
}

// named notes that a comparison names a document, and says whether somebody has damaged it.
func (r *repairs) named(d document) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compared++
	return r.touched[d]
}

// isTouched says whether somebody has damaged a document.
func (r *repairs) isTouched(d document) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.touched[d]
}

// anyTouched says whether somebody has damaged a document of an aggregate, in any view.
func (r *repairs) anyTouched(aggregate string) bool {
	return slices.ContainsFunc(single, func(view string) bool { return r.isTouched(document{view, aggregate}) })
}

// anyDocument is any of them.
func anyDocument(document) bool { return true }

// comparedBeside is how many aggregates are compared beside those that are damaged.
const comparedBeside = 20

// verifyTime bounds a comparison beside faults.
const verifyTime = 30 * time.Second

// stillDamaged are those of some documents that nothing has mended since.
func (r *repairs) stillDamaged(view string, ids []string) []string {
	now := r.sorted(view, true)
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(now, id) })
}

// mend runs the commands that a comparison offers, to the letter, but for the documents that
// are not meant, and those that remove twins, and says what came of them. What fails now is
// mended at the end.
func (c *campaign) mend(ctx context.Context, n *cluster.Node, v verified, meant func(document) bool) string {
	mended, failed := 0, 0
	for _, command := range v.commands {
		words, aggregates := wordsOf(command, meant)
		if len(aggregates) == 0 {
			continue // a whole projection is built anew at the end
		}
		if output, err := n.CommandIn(ctx, nil, append(words, "--rate", "0")...); err != nil {
			c.say("%s: %s", command, outcomeOf(output, err))
			failed++
			continue
		}
		mended++
		c.repairs.isMended(words, aggregates)
	}
	if mended+failed == 0 {
		return ""
	}
	return fmt.Sprintf("; of the commands that it offers %d mend, and %d fail", mended, failed)
}

// isMended notes that the documents of aggregates were built anew.
func (r *repairs) isMended(words, aggregates []string) {
	view := words[slices.Index(words, "--projection")+1]
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range aggregates {
		delete(r.damaged, document{view, id})
		r.mended++
	}
}

// wordsOf are the words of a command as a shell reads them, without the program, and the
// aggregates that it names; without those of which documents are not meant.
func wordsOf(command string, meant func(document) bool) (words, aggregates []string) {
	all := split(command)
	all = all[min(len(all), 1):]
	view := ""
	if i := slices.Index(all, "--projection") + 1; i > 0 && i < len(all) {
		view = all[i]
	}
	for i := 0; i < len(all); i++ {
		if all[i] != "--aggregate" || i+1 == len(all) {
			words = append(words, all[i])
			continue
		}
		if i++; meant(document{view, all[i]}) {
			words, aggregates = append(words, "--aggregate", all[i]), append(aggregates, all[i])
		}
	}
	return words, aggregates
}

// split are the words of a command as a shell reads them.
func split(command string) (words []string) {
	var word strings.Builder
	quoted, open := false, false
	for _, r := range command + " " {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	return words
}
