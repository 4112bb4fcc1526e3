"""Papers on invented subjects, as authors write them: in LaTeX, in Markdown, and as JSON."""

from __future__ import annotations

LATEX = r"""\documentclass[11pt]{article}
\usepackage{amsmath,graphicx} % nothing else
\newtheorem{thm}{Theorem}
\newcommand{\R}{\mathbb{R}}

\title{Counting Reeds in \emph{Moving} Water\thanks{Thanks to the marsh.}}
\author{Ada Wader\\ Institute of Marshes \and Ben H\"olt}
\date{}

\begin{document}
\maketitle

\begin{abstract}
We count reeds from a boat. The estimate is unbiased, though the water moves.
\end{abstract}

\section{Introduction}\label{sec:intro}
Reeds are hard to count \cite{wader2017count,holt2019}. Earlier work stands still~\citep[see][p.~3]{still}.
We refer to Section~\ref{sec:model}. % \section{Not a section}
A share of 5\% is lost.

\section{Model} \label{sec:model}
Words on the model, which is simple enough for a paragraph of its own.

The rate of reeds per metre is given by
\begin{equation}\label{eq:rate}
  \lambda(x) = \frac{n(x)}{\ell(x)},

  \qquad x \in \R
\end{equation}
where $n(x)$ is the number of reeds and $\ell(x)$ the length of the bank. The rest is noise.

\begin{thm}[Unbiasedness]\label{thm:unbiased}
Let $\lambda$ be bounded. Then the estimate of \eqref{eq:rate} is unbiased.

It is also consistent.
\end{thm}
\begin{proof}
Integrate by parts. Then let the boat slow down. Nothing remains of the second term,
since the bank is finite.
\end{proof}

\subsection{Boats}
\begin{itemize}
  \item Short boats turn quickly.
  \item Long boats
    \begin{verbatim}
\section{not a heading}

50% of it
    \end{verbatim}
    keep their course.
\end{itemize}

\begin{figure}[t]
  \centering
  \includegraphics{boat.pdf}
  \caption{The boat. Its bow is on the left.}
  \label{fig:boat}
\end{figure}

\begin{algorithm}
\caption{Counting}\label{alg:count}
\begin{algorithmic}
\STATE look left

\STATE look right
\end{algorithmic}
\end{algorithm}

\section*{Conclusion}
It works.

\begin{thebibliography}{9}
\bibitem{wader2017count} A.~Wader and B.~H\"olt.
\newblock Counting what stands still in a marsh.
\newblock In \emph{Proc.\ of Wetlands}, 2017. doi:10.1000/marsh.17

\bibitem[H\"olt(2019)]{holt2019} B. H\"olt. ``Reeds and their many roots,'' arXiv:1901.01234, 2019.
\end{thebibliography}
\end{document}
"""

MARKDOWN = """# Counting Reeds in Moving Water

Ada Wader, Ben Hölt

## Abstract

We count reeds from a boat. The estimate is unbiased, though the water moves.

## 1. Introduction

Reeds are hard to count [1, 2]. Earlier work stands still (Still et al., 2015), and [^note] knows why.

## 2. Model

Words on the model, which is simple enough for a paragraph of its own.

The rate of reeds per metre is given by

$$
\\lambda(x) = \\frac{n(x)}{\\ell(x)},

\\qquad x \\in R
$$

where $n(x)$ is the number of reeds and $\\ell(x)$ the length of the bank. The rest is noise.

**Theorem 1 (Unbiasedness).** Let the rate be bounded. Then the estimate is unbiased.

*Proof.* Integrate by parts. Then let the boat slow down.

Nothing remains of the second term. □

### 2.1 Boats

Table 1: Boats and their lengths. The last one leaks.

| boat | metres |
| ---- | ------ |
| punt | 6 |

![The boat](boat.png)

Figure 1. The boat. Its bow is on the left.

**Algorithm 1.** Counting.

```text
look left

look right
```

## References

[1] A. Wader and B. Hölt. Counting what stands still in a marsh. In Proc. of Wetlands, 2017. doi:10.1000/marsh.17

[2] B. Hölt. "Reeds and their many roots," arXiv:1901.01234, 2019.

[3] C. Still and D. Calm. Standing still for a very long time. Marsh Letters, 2015.
"""

JSON = {
    "paper_id": "reeds",
    "title": "Counting Reeds in Moving Water",
    "authors": [{"first": "Ada", "middle": ["M."], "last": "Wader", "suffix": ""}, {"name": "Ben Hölt"}],
    "abstract": [{"text": "We count reeds from a boat.", "section": "Abstract"}],
    "body_text": [
        {
            "text": "Reeds are hard to count [4].",
            "section": "Introduction",
            "cite_spans": [{"start": 24, "end": 27, "text": "[4]", "ref_id": "BIBREF3"}],
        },
        {"text": "Others stand still (Still, 2015).", "section": "Introduction", "cite_spans": []},
        {"text": "# of reeds per metre.", "section": "Model"},
    ],
    "bib_entries": {
        "BIBREF3": {
            "title": "Counting what stands still in a marsh",
            "authors": [{"first": "A", "last": "Wader"}],
            "year": 2017,
            "venue": "Wetlands",
            "other_ids": {"DOI": ["10.1000/marsh.17"]},
        },
        "BIBREF4": {"title": "Standing still for a very long time", "authors": [{"last": "Still"}], "year": 2015},
    },
}
