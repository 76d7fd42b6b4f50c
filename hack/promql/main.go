// Evaluates alerting rules and queries over scrapes, with the parser, storage and engine of Prometheus.
//
// It reads one Input as JSON from standard input and writes one Output to standard output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Input is a rule file and scrapes in order of time.
type Input struct {
	// Rules is the YAML of a rule file.
	Rules string `json:"rules"`
	// Queries are evaluated at the end.
	Queries []string `json:"queries"`
	Scrapes []Scrape `json:"scrapes"`
}

// Scrape is the response of one target at one time.
type Scrape struct {
	Target map[string]string `json:"target"`
	AtMs   int64             `json:"atMs"`
	// Text is nil if the target did not answer.
	Text *string `json:"text"`
}

// Output is the result, or the errors in the rules.
type Output struct {
	RuleErrors []string `json:"ruleErrors"`
	// Fired has the alerts that fired at any time.
	Fired []Fired `json:"fired"`
	// Errors has the rules and queries that could not be evaluated.
	Errors []string `json:"errors"`
	// Series is the number of series of each query.
	Series map[string]int `json:"series"`
}

// Fired is an alert when it first fired.
type Fired struct {
	Alert       string            `json:"alert"`
	AtMs        int64             `json:"atMs"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

var (
	quiet  = slog.New(slog.NewTextHandler(io.Discard, nil))
	syntax = parser.NewParser(parser.Options{})
)

func main() {
	var input Input
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		fail(fmt.Errorf("reading the input: %w", err))
	}
	output := Output{RuleErrors: []string{}, Fired: []Fired{}, Errors: []string{}, Series: map[string]int{}}
	groups, errs := rulefmt.Parse([]byte(input.Rules), false, model.UTF8Validation, syntax, quiet)
	for _, err := range errs {
		output.RuleErrors = append(output.RuleErrors, err.Error())
	}
	if len(errs) == 0 {
		if err := output.play(input, groups); err != nil {
			fail(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(output); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "promql:", err)
	os.Exit(1)
}

func (o *Output) play(input Input, groups *rulefmt.RuleGroups) error {
	folder, err := os.MkdirTemp("", "promql-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	db, err := tsdb.Open(folder, quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	engine := promql.NewEngine(promql.EngineOpts{
		Logger:               quiet,
		MaxSamples:           50_000_000,
		Timeout:              time.Minute,
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
		Parser:               syntax,
	})
	alerts, err := alertsOf(groups)
	if err != nil {
		return err
	}
	ctx := context.Background()
	query := rules.EngineQueryFunc(engine, db)
	targets := map[string]*target{}
	seen := map[string]bool{}
	var now time.Time
	for left := input.Scrapes; len(left) > 0; {
		together := 1
		for together < len(left) && left[together].AtMs == left[0].AtMs {
			together++
		}
		now = time.UnixMilli(left[0].AtMs)
		if err := store(ctx, db, targets, left[:together], now.UnixMilli()); err != nil {
			return err
		}
		left = left[together:]
		for _, alert := range alerts {
			if _, err := alert.Eval(ctx, 0, now, query, &url.URL{}, 0); err != nil {
				o.Errors = append(o.Errors, fmt.Sprintf("%s: %v", alert.Name(), err))
			}
			for _, active := range alert.ActiveAlerts() {
				id := active.Labels.String()
				if active.State != rules.StateFiring || seen[id] {
					continue
				}
				seen[id] = true
				o.Fired = append(o.Fired, Fired{
					Alert:       alert.Name(),
					AtMs:        now.UnixMilli(),
					Labels:      active.Labels.Map(),
					Annotations: active.Annotations.Map(),
				})
			}
		}
	}
	for _, expression := range input.Queries {
		vector, err := query(ctx, expression, now)
		if err != nil {
			o.Errors = append(o.Errors, fmt.Sprintf("%s: %v", expression, err))
		}
		o.Series[expression] = len(vector)
	}
	return nil
}

func alertsOf(groups *rulefmt.RuleGroups) ([]*rules.AlertingRule, error) {
	var alerts []*rules.AlertingRule
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			expr, err := syntax.ParseExpr(rule.Expr)
			if err != nil {
				return nil, err
			}
			alerts = append(alerts, rules.NewAlertingRule(
				rule.Alert, expr, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
				labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(),
				"", true, quiet,
			))
		}
	}
	return alerts, nil
}

// target records its last series: missing ones are marked as stale, as Prometheus does.
type target struct {
	labels map[string]string
	series map[string]labels.Labels
}

func store(
	ctx context.Context, db *tsdb.DB, targets map[string]*target, scrapes []Scrape, atMs int64,
) error {
	appender := db.Appender(ctx)
	present := map[string]bool{}
	for _, scrape := range scrapes {
		id := labels.FromMap(scrape.Target).String()
		present[id] = true
		if targets[id] == nil {
			targets[id] = &target{labels: scrape.Target, series: map[string]labels.Labels{}}
		}
		if err := targets[id].append(appender, scrape.Text, atMs); err != nil {
			return err
		}
	}
	for id, gone := range targets {
		if !present[id] {
			if err := gone.stale(appender, map[string]labels.Labels{}, atMs); err != nil {
				return err
			}
			delete(targets, id)
		}
	}
	return appender.Commit()
}

func (t *target) append(appender storage.Appender, text *string, atMs int64) error {
	now := map[string]labels.Labels{}
	add := func(series labels.Labels, sample float64) error {
		builder := labels.NewBuilder(series)
		for name, is := range t.labels {
			// As with honor_labels: false, the target's own label is renamed.
			if own := series.Get(name); own != "" {
				builder.Set("exported_"+name, own)
			}
			builder.Set(name, is)
		}
		full := builder.Labels()
		now[full.String()] = full
		_, err := appender.Append(0, full, atMs, sample)
		return err
	}
	up := 0.0
	if text != nil {
		up = 1
		if err := samples([]byte(*text), add); err != nil {
			return err
		}
	}
	if err := add(labels.FromStrings(labels.MetricName, "up"), up); err != nil {
		return err
	}
	return t.stale(appender, now, atMs)
}

func (t *target) stale(appender storage.Appender, now map[string]labels.Labels, atMs int64) error {
	for id, series := range t.series {
		if _, there := now[id]; !there {
			if _, err := appender.Append(0, series, atMs, math.Float64frombits(value.StaleNaN)); err != nil {
				return err
			}
		}
	}
	t.series = now
	return nil
}

func samples(text []byte, add func(labels.Labels, float64) error) error {
	reader, err := textparse.New(text, "text/plain; version=0.0.4", nil, textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a scrape is malformed: %w", err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, sample := reader.Series()
		var series labels.Labels
		reader.Labels(&series)
		if err := add(series, sample); err != nil {
			return err
		}
	}
}
