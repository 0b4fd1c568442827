module minutch/benchmarks/colly

go 1.24

require github.com/gocolly/colly/v2 v2.3.0
