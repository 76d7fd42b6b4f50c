// Program fuzz answers what Kubernetes makes of an input: it reads one question on each line of standard input, and
// prints one answer on each line of standard output. See reference.ts for the form of both.
package main

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/robfig/cron/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type question struct {
	Target string `json:"target"`
	Input  []byte `json:"input"`
}

type answer struct {
	OK    bool `json:"ok"`
	Value any  `json:"value"`
}

var targets = map[string]func(input []byte) (any, error){
	"label-selector": labelSelector,
	"field-selector": fieldSelector,
	"quantity": func(input []byte) (any, error) {
		// As in JSON.
		quantity, err := resource.ParseQuantity(strings.TrimSpace(string(input)))
		return quantity.String(), err
	},
	"time":       moment(time.RFC3339),
	"micro-time": moment("2006-01-02T15:04:05.000000Z07:00"),
	"duration": func(input []byte) (any, error) {
		duration, err := time.ParseDuration(string(input))
		return fmt.Sprint(int64(duration)), err
	},
	"format-duration": func(input []byte) (any, error) {
		duration, err := strfmt.ParseDuration(string(input))
		return fmt.Sprint(int64(duration)), err
	},
	"cron": schedule,
	"format": func(input []byte) (any, error) {
		name, text, _ := strings.Cut(string(input), ":")
		return strfmt.Default.Validates(name, text), nil
	},
	"json":                  strictJSON,
	"json-path":             jsonPath,
	"json-patch":            patch(applyJSONPatch),
	"merge-patch":           patch(jsonpatch.MergePatch),
	"strategic-merge-patch": patch(applyStrategicPatch),
	"protobuf": func(input []byte) (any, error) {
		pod := corev1.Pod{}
		err := pod.Unmarshal(input)
		return pod, err
	},
	"certificate-request": certificateRequest,
	"cel": func(input []byte) (any, error) {
		_, issues := environment.Parse(string(input))
		return nil, issues.Err()
	},
	"kubeconfig": kubeconfig,
	"yaml": func(input []byte) (any, error) {
		text, err := yaml.YAMLToJSON(input)
		return json.RawMessage(text), err
	},
}

var environment = must(cel.NewEnv(cel.OptionalTypes(), ext.TwoVarComprehensions()))

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	for input.Scan() {
		var asked question
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			panic(err)
		}
		value, err := ask(asked)
		result := answer{OK: err == nil, Value: value}
		if err != nil {
			result.Value = err.Error()
		}
		text, err := json.Marshal(result)
		if err != nil {
			text = must(json.Marshal(answer{Value: "no JSON: " + err.Error()}))
		}
		output.Write(append(text, '\n'))
	}
	if err := input.Err(); err != nil {
		panic(err)
	}
}

// A question for which a library needs longer has no answer.
const longest = 2 * time.Second

// A question without meaning has none, too.
var errTooLong = errors.New("no answer")

func ask(asked question) (any, error) {
	type result struct {
		value any
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := recovered(asked)
		done <- result{value, err}
	}()
	select {
	case found := <-done:
		return found.value, found.err
	case <-time.After(longest):
		return nil, errTooLong
	}
}

// recovered turns a panic of a library into an error, as API servers do.
func recovered(asked question) (value any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return targets[asked.Target](asked.Input)
}

type requirement struct {
	Key    string   `json:"key"`
	Op     string   `json:"operator"`
	Values []string `json:"values"`
}

func labelSelector(input []byte) (any, error) {
	selector, err := labels.Parse(string(input))
	if err != nil {
		return nil, err
	}
	all, _ := selector.Requirements()
	found := []requirement{}
	for _, each := range all {
		operator := string(each.Operator())
		switch each.Operator() {
		case selection.Equals, selection.DoubleEquals:
			operator = "in"
		case selection.NotEquals:
			operator = "notin"
		case selection.DoesNotExist:
			operator = "absent"
		}
		found = append(found, requirement{each.Key(), operator, each.Values().List()})
	}
	return found, nil
}

func fieldSelector(input []byte) (any, error) {
	selector, err := fields.ParseSelector(string(input))
	if err != nil {
		return nil, err
	}
	found := []requirement{}
	for _, each := range selector.Requirements() {
		operator := "="
		if each.Operator == selection.NotEquals {
			operator = "!="
		}
		found = append(found, requirement{each.Field, operator, []string{each.Value}})
	}
	return found, nil
}

func moment(layout string) func([]byte) (any, error) {
	return func(input []byte) (any, error) {
		parsed, err := time.Parse(layout, string(input))
		return []int64{parsed.Unix(), int64(parsed.Nanosecond())}, err
	}
}

func schedule(input []byte) (any, error) {
	if strings.Contains(string(input), "TZ") {
		return nil, errors.New("a schedule has no time zone")
	}
	parsed, err := cron.ParseStandard(string(input))
	if err != nil {
		return nil, err
	}
	next := parsed.Next(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC))
	if next.IsZero() {
		return 0, nil
	}
	return next.UnixMilli(), nil
}

func strictJSON(input []byte) (any, error) {
	var value any
	strict, err := kjson.UnmarshalStrict(input, &value)
	found := []string{}
	for _, each := range strict {
		found = append(found, each.Error())
	}
	return found, err
}

func jsonPath(input []byte) (any, error) {
	path, text, _ := strings.Cut(string(input), "\n")
	var document any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &document); err != nil {
		return nil, err
	}
	parsed := jsonpath.New("column").AllowMissingKeys(true)
	if err := parsed.Parse("{" + path + "}"); err != nil {
		return nil, err
	}
	results, err := parsed.FindResults(document)
	if err != nil {
		return nil, err
	}
	values := []any{}
	for _, each := range results {
		for _, value := range each {
			values = append(values, value.Interface())
		}
	}
	return values, nil
}

func patch(apply func(document, patch []byte) ([]byte, error)) func([]byte) (any, error) {
	return func(input []byte) (any, error) {
		var asked struct {
			Document json.RawMessage `json:"document"`
			Patch    json.RawMessage `json:"patch"`
		}
		if err := json.Unmarshal(input, &asked); err != nil {
			return nil, err
		}
		result, err := apply(asked.Document, asked.Patch)
		return json.RawMessage(result), err
	}
}

func applyJSONPatch(document, text []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(document)
}

func applyStrategicPatch(document, text []byte) ([]byte, error) {
	// An API server patches only objects that it has decoded.
	strict, err := kjson.UnmarshalStrict(document, &corev1.Pod{})
	if err != nil || len(strict) > 0 || bytes.Contains(document, []byte("null")) {
		return nil, errTooLong
	}
	return strategicpatch.StrategicMergePatch(document, text, corev1.Pod{})
}

func certificateRequest(input []byte) (any, error) {
	request, err := x509.ParseCertificateRequest(input)
	if err != nil {
		return nil, err
	}
	return []any{request.Subject.CommonName, request.Subject.Organization}, nil
}

func kubeconfig(input []byte) (any, error) {
	config, err := clientcmd.Load(input)
	if err != nil {
		return nil, err
	}
	contexts, clusters, users := map[string]any{}, map[string]any{}, map[string]any{}
	for name, each := range config.Contexts {
		contexts[name] = []string{each.Cluster, each.AuthInfo, each.Namespace}
	}
	for name, each := range config.Clusters {
		clusters[name] = []any{each.Server, each.InsecureSkipTLSVerify, each.TLSServerName, each.CertificateAuthority, each.ProxyURL}
	}
	for name, each := range config.AuthInfos {
		users[name] = []any{each.Token, each.TokenFile, each.Username, each.Password, each.ClientCertificate}
	}
	return []any{config.CurrentContext, contexts, clusters, users}, nil
}
