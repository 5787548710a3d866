package broker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// rule is a Rule ready to be applied.
type rule struct {
	entity.Rule
	match func(*entity.Message) bool
}

func compileRule(r entity.Rule, now time.Time) (*rule, error) {
	if err := checkName("rule", r.Name, maxChildName, false); err != nil {
		return nil, err
	}
	if r.Filter == nil {
		r.Filter = entity.TrueFilter{}
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = now
	}
	match, err := entity.CompileFilter(r.Filter)
	if err != nil {
		return nil, entity.ErrArgument("The filter of rule '%s' is not valid: %s.", r.Name, err)
	}
	return &rule{Rule: r, match: match}, nil
}

func compileRules(rules []entity.Rule, now time.Time) ([]*rule, error) {
	compiled := make([]*rule, 0, len(rules))
	for _, r := range rules {
		c, err := compileRule(r, now)
		if err != nil {
			return nil, err
		}
		if indexOf(compiled, r.Name) >= 0 {
			return nil, errEntityExists(r.Name)
		}
		compiled = append(compiled, c)
	}
	return compiled, nil
}

func indexOf(rules []*rule, name string) int {
	return slices.IndexFunc(rules, func(r *rule) bool { return strings.EqualFold(r.Name, name) })
}

// CreateRule adds a rule.
func (b *Broker) CreateRule(topic, subscription string, r entity.Rule) (entity.Rule, error) {
	compiled, err := compileRule(r, time.Now())
	if err != nil {
		return entity.Rule{}, err
	}
	return b.changeRules(topic, subscription, func(rules []*rule) ([]*rule, *rule, error) {
		if indexOf(rules, r.Name) >= 0 {
			return nil, nil, errEntityExists(r.Name)
		}
		return append(slices.Clone(rules), compiled), compiled, nil
	})
}

// UpdateRule replaces a rule.
func (b *Broker) UpdateRule(topic, subscription string, r entity.Rule) (entity.Rule, error) {
	compiled, err := compileRule(r, time.Now())
	if err != nil {
		return entity.Rule{}, err
	}
	return b.changeRules(topic, subscription, func(rules []*rule) ([]*rule, *rule, error) {
		i := indexOf(rules, r.Name)
		if i < 0 {
			return nil, nil, errRuleNotFound(r.Name)
		}
		changed := slices.Clone(rules)
		changed[i] = compiled
		return changed, compiled, nil
	})
}

// DeleteRule removes a rule. A subscription without rules gets no messages.
func (b *Broker) DeleteRule(topic, subscription, name string) error {
	_, err := b.changeRules(topic, subscription, func(rules []*rule) ([]*rule, *rule, error) {
		i := indexOf(rules, name)
		if i < 0 {
			return nil, nil, errRuleNotFound(name)
		}
		gone := rules[i]
		return slices.Delete(slices.Clone(rules), i, i+1), gone, nil
	})
	return err
}

func errRuleNotFound(name string) *entity.Error {
	return &entity.Error{Condition: entity.ConditionNotFound, Description: fmt.Sprintf("The rule '%s' could not be found.", name)}
}

func (b *Broker) changeRules(topic, subscription string, change func([]*rule) ([]*rule, *rule, error)) (entity.Rule, error) {
	b.mu.Lock()
	in, out, err := b.subscription(topic, subscription)
	if err != nil {
		b.mu.Unlock()
		return entity.Rule{}, err
	}
	rules, changed, err := change(out.rules)
	if err != nil {
		b.mu.Unlock()
		return entity.Rule{}, err
	}
	out.rules = rules
	out.dates.updated = time.Now()
	b.log.subscription(in, out)
	return changed.Rule, b.unlockAndCommit()
}

// Rules lists a subscription's by name.
func (b *Broker) Rules(topic, subscription string) ([]entity.Rule, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, out, err := b.subscription(topic, subscription)
	if err != nil {
		return nil, err
	}
	rules := make([]entity.Rule, 0, len(out.rules))
	for _, r := range out.rules {
		rules = append(rules, r.Rule)
	}
	slices.SortFunc(rules, func(x, y entity.Rule) int { return strings.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name)) })
	return rules, nil
}
