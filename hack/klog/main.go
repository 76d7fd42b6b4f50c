// Program klog prints the output of the real klog, and of the JSON log of Kubernetes' components, for log
// calls: it reads one call on each line of standard input and prints one result on each line of standard
// output. See call.ts for the form of a call.
//
// With the argument "printable" it prints the code points that strconv.Quote does not escape, as pairs
// of first and last.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	logsapi "k8s.io/component-base/logs/api/v1"
	logsjson "k8s.io/component-base/logs/json"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

type call struct {
	// Year, month, day, hour, minute, second and microsecond, local time.
	Time []int  `json:"time"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Verbosity of the process.
	Verbosity int `json:"verbosity"`
	// Verbosity of the line.
	Level   int     `json:"level"`
	Scopes  []scope `json:"scopes"`
	IsError bool    `json:"isError"`
	// The error of an error line; null for none.
	Error   *string `json:"error"`
	Message string  `json:"message"`
	Fields  []field `json:"fields"`
}

// scope is one WithName or one WithValues.
type scope struct {
	Name   string  `json:"name"`
	Fields []field `json:"fields"`
}

type field struct {
	Key   string
	Value value
}

func (f *field) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&f.Key, &f.Value})
}

// value has one member: the kind of the value with its content.
type value struct {
	String   *string  `json:"string"`
	Bool     *bool    `json:"bool"`
	Int      *string  `json:"int"`
	Float    *string  `json:"float"`
	Big      *string  `json:"big"`
	Null     bool     `json:"null"`
	Error    *string  `json:"error"`
	Ref      *object  `json:"ref"`
	Refs     []object `json:"refs"`
	List     []value  `json:"list"`
	Struct   []field  `json:"struct"`
	Map      []field  `json:"map"`
	Duration *float64 `json:"duration"`
	Date     *int64   `json:"date"`
	Bytes    []byte   `json:"bytes"`
}

type object struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (o object) GetName() string      { return o.Name }
func (o object) GetNamespace() string { return o.Namespace }

// members is a struct, encoded in the order of its fields.
type members []field

func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(f.Key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.Value.make())
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (v value) make() any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil:
		return must(strconv.ParseInt(*v.Int, 10, 64))
	case v.Float != nil:
		return must(strconv.ParseFloat(*v.Float, 64))
	case v.Big != nil:
		n, ok := new(big.Int).SetString(*v.Big, 10)
		if !ok {
			panic("no integer: " + *v.Big)
		}
		return n
	case v.Error != nil:
		return errors.New(*v.Error)
	case v.Ref != nil:
		return klog.KRef(v.Ref.Namespace, v.Ref.Name)
	case v.Refs != nil:
		return klog.KObjSlice(v.Refs)
	case v.List != nil:
		list := make([]any, 0, len(v.List))
		for _, each := range v.List {
			list = append(list, each.make())
		}
		return list
	case v.Struct != nil:
		return members(v.Struct)
	case v.Map != nil:
		m := make(map[string]any)
		for _, f := range v.Map {
			m[f.Key] = f.Value.make()
		}
		return m
	case v.Duration != nil:
		return time.Duration(math.Round(*v.Duration*1000)) * time.Microsecond
	case v.Date != nil:
		return time.UnixMilli(*v.Date).UTC()
	case v.Bytes != nil:
		return v.Bytes
	case v.Null:
		return nil
	}
	panic("a value without a kind")
}

func pairs(fields []field) []any {
	var kvs []any
	for _, f := range fields {
		kvs = append(kvs, f.Key, f.Value.make())
	}
	return kvs
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// log makes the call c on a logger.
func (c call) log(logger logr.Logger) {
	for _, s := range c.Scopes {
		if s.Name != "" {
			logger = logger.WithName(s.Name)
		} else {
			logger = logger.WithValues(pairs(s.Fields)...)
		}
	}
	if !c.IsError {
		logger.V(c.Level).Info(c.Message, pairs(c.Fields)...)
	} else if c.Error != nil {
		logger.V(c.Level).Error(errors.New(*c.Error), c.Message, pairs(c.Fields)...)
	} else {
		logger.V(c.Level).Error(nil, c.Message, pairs(c.Fields)...)
	}
}

type answer struct {
	// Text with a header.
	Text string `json:"text"`
	JSON string `json:"json"`
}

func (c call) answer() (answer, error) {
	var text, body, structured bytes.Buffer
	at := c.Time
	now := time.Date(at[0], time.Month(at[1]), at[2], at[3], at[4], at[5], at[6]*1000, time.Local)
	config := textlogger.NewConfig(
		textlogger.Verbosity(c.Verbosity),
		textlogger.Output(&text),
		textlogger.FixedTime(now),
		textlogger.Backtrace(func(int) (string, int) { return c.File, c.Line }),
	)
	c.log(textlogger.NewLogger(config))

	// Without a header, klog itself, in all forms of a call.
	klog.SetOutput(&body)
	if err := flag.Set("v", strconv.Itoa(c.Verbosity)); err != nil {
		return answer{}, err
	}
	c.log(klog.NewKlogr())
	bodies := []string{body.String()}
	if len(c.Scopes) == 0 && !c.IsError {
		body.Reset()
		klog.V(klog.Level(c.Level)).InfoS(c.Message, pairs(c.Fields)...)
		bodies = append(bodies, body.String())
		body.Reset()
		klog.V(klog.Level(c.Level)).InfoSDepth(1, c.Message, pairs(c.Fields)...)
		bodies = append(bodies, body.String())
	}
	if len(c.Scopes) == 0 && c.IsError {
		var err error
		if c.Error != nil {
			err = errors.New(*c.Error)
		}
		body.Reset()
		klog.ErrorS(err, c.Message, pairs(c.Fields)...)
		bodies = append(bodies, body.String())
	}
	for _, each := range bodies {
		if !strings.HasSuffix(text.String(), each) || (each == "") != (text.Len() == 0) {
			return answer{}, fmt.Errorf("klog wrote %q and textlogger %q", each, text.String())
		}
	}

	stream := zapcore.AddSync(&structured)
	logger, _ := logsjson.NewJSONLogger(logsapi.VerbosityLevel(c.Verbosity), stream, nil, nil)
	c.log(logger)
	return answer{Text: text.String(), JSON: structured.String()}, nil
}

func run() error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	if len(os.Args) > 1 && os.Args[1] == "printable" {
		return encoder.Encode(map[string]any{"unicode": unicode.Version, "ranges": printable()})
	}
	klog.InitFlags(nil)
	// Each line once, to the writer of SetOutput.
	for name, value := range map[string]string{
		"logtostderr":                      "false",
		"one_output":                       "true",
		"stderrthreshold":                  "FATAL",
		"legacy_stderr_threshold_behavior": "false",
		"skip_headers":                     "true",
	} {
		if err := flag.Set(name, value); err != nil {
			return err
		}
	}
	if err := encoder.Encode(map[string]int{"pid": os.Getpid()}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var c call
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		a, err := c.answer()
		if err != nil {
			return err
		}
		if err := encoder.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

// printable quotes each code point and returns those that stay unchanged.
func printable() [][2]rune {
	var ranges [][2]rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r <= 0xdfff || strconv.Quote(string(r)) != `"`+string(r)+`"` {
			continue
		}
		if n := len(ranges); n > 0 && ranges[n-1][1] == r-1 {
			ranges[n-1][1] = r
		} else {
			ranges = append(ranges, [2]rune{r, r})
		}
	}
	return ranges
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "klog:", err)
		os.Exit(1)
	}
}
